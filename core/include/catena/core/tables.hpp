// The tables of the loaded plugins, and texts for messages: for tools.
#pragma once

#include <catena/abi/plugin.h>

#include <string>
#include <string_view>
#include <vector>

namespace catena {

struct PluginTable {
    std::string id;              // from its manifest
    const catena_plugin* table;  // stays valid
};
// In loading order. Searches the usual folders first.
std::vector<PluginTable> plugin_tables();

// Kernels for a function that no loaded plugin has: it is misspelled, or its plugin comes later.
struct KernelsWithoutFunction {
    std::string plugin;    // id
    std::string function;  // as the kernels name it
    std::string guess;     // the function that was probably meant; "" if no name is similar
};

// With '?' for control characters: a file may have any name, and it must not look like two lines.
std::string one_line(std::string text);
// The first 200 bytes of a text for a message, in whole characters of UTF-8, and "..." if cut.
std::string beginning(std::string_view text);

}  // namespace catena
