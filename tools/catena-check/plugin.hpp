// A plugin in this process: loaded as a host does it, and a testing::World of it.
#pragma once

#include "check.hpp"

#include <catena/testing.hpp>

#include <memory>

namespace catena::check {

// Mapped for ever. Throws a testing::Failure that says why it cannot be.
struct Module {
    explicit Module(const std::filesystem::path& file);

    void* library = nullptr;
    const catena_manifest* manifest = nullptr;
    decltype(&catena_plugin_entry_v1) entry = nullptr;

    // entry() with the host of catena::testing. Throws a Failure with its text where there is none.
    const catena_plugin& table(testing::World& world) const;
};

// What keeps anybody from reading the table, or an empty text.
std::string damage(const catena_manifest& manifest, const catena_plugin& table);

// The plugin, then those that it is tested with.
std::unique_ptr<testing::World> make_world(const Subject& subject);
// Why nothing of the subject has a part in calls of the subject's function; empty if something has.
std::string absent_in(testing::World& world, const Subject& subject);

}  // namespace catena::check
