// What the loaded plugins brought, in their own words: for tools that show it.
#pragma once

#include <catena/abi/plugin.h>

#include <string>
#include <vector>

namespace catena {

struct PluginTable {
    std::string id;              // of its manifest
    const catena_plugin* table;  // valid for ever
};
// In the order of loading; searches the usual places first, as every search does.
std::vector<PluginTable> plugin_tables();

}  // namespace catena
