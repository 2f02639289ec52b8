// Opens plugins once per process and never closes them, as hosts do. Finds catena's own plugins.
#pragma once

#include <string>
#include <vector>

#include "catena/testing/world.hpp"

namespace catena::testing::detail {

// A loaded file of a plugin, which is never closed. Throws a Failure with the reason if it fails.
struct Module {
    explicit Module(const std::string& file);
    // Calls entry() and, with `init`, init(). Throws a Failure with the plugin's text.
    const catena_plugin& table(const catena_host& host, World& world, bool init) const;

    const catena_manifest* manifest = nullptr;
    decltype(&catena_plugin_entry_v1) entry = nullptr;
};

struct Library {
    std::string path;  // with symbolic links resolved
    const catena_manifest* manifest = nullptr;
    const catena_plugin* table = nullptr;
};
const Library& open_library(const std::string& path, World& world);

// Returns the plugins in a folder whose files contain a name: those that define the function and
// those that use it. Leaves out NAME.DEVICE.catena, which has only kernels.
std::vector<std::string> plugins_with(const std::string& name, const std::string& folder);

}  // namespace catena::testing::detail
