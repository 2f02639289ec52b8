// Opening a plugin's file: once in a process and never closed, as in a host. And where catena's own
// plugins are.
#pragma once

#include <string>
#include <vector>

#include "catena/testing/world.hpp"

namespace catena::testing::detail {

// A plugin's file that is mapped and never closed. Throws a Failure that says why it cannot be.
struct Module {
    explicit Module(const std::string& file);
    // entry() and, with `init`, init(). Throws a Failure with the plugin's text.
    const catena_plugin& table(const catena_host& host, World& world, bool init) const;

    const catena_manifest* manifest = nullptr;
    decltype(&catena_plugin_entry_v1) entry = nullptr;
};

struct Library {
    std::string path;  // without links
    const catena_manifest* manifest = nullptr;
    const catena_plugin* table = nullptr;
};
const Library& open_library(const std::string& path, World& world);

// The plugins in a folder whose files hold a name: the one that has the function, and its users.
// NAME.DEVICE.catena has kernels alone.
std::vector<std::string> plugins_with(const std::string& name, const std::string& folder);

}  // namespace catena::testing::detail
