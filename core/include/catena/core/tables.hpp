// What the loaded plugins have: their tables, functions, kernels; and which are preferred.
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
// In loading order. Searches the usual folders first, unless `search` is false.
std::vector<PluginTable> plugin_tables(bool search = true);

// Names of all registered functions, sorted; and what a plugin says of one (PluginError if none).
std::vector<std::string> function_names();
const catena_function& function_descriptor(std::string_view name);

struct KernelTable {
    std::string plugin;  // id
    const catena_kernel* table;
};
// All kernels of a function. Throws PluginError if no plugin has it.
std::vector<KernelTable> kernel_tables(std::string_view function);

// The table with the highest priority that plugins provide under an id ("catena.kernels/1")
// for no particular device, or null. Searches the usual folders first. Stays valid.
const void* extension(const char* id);

// Prefers a plugin (manifest id; empty: no preference) for a function's kernels, forward and
// backward, or for an extension ("catena.blas/1"). Affects later runs, also of existing calls. If
// the plugin has no such kernel, or its supports() returns false, the usual order applies. Throws
// PluginError if no plugin has a function or an extension with that name.
// $CATENA_PIN="FUNCTION=PLUGIN,EXTENSION=PLUGIN" does the same for plugins that are loaded later,
// in any order and with short names (relu for catena.relu); entries that match nothing after the
// usual folders were searched are logged as warnings.
void pin_kernels(std::string_view function, std::string_view plugin);

// An entry of $CATENA_PIN; name: of the function or extension.
struct PinWish {
    std::string item, name, plugin;
};
std::vector<PinWish> take_pin_wishes();  // those since the last call

// Kernels for a function that no loaded plugin has: it is misspelled, or its plugin comes later.
struct KernelsWithoutFunction {
    std::string plugin;    // id
    std::string function;  // as the kernels name it
    std::string guess;     // the function that was probably meant; "" if no name is similar
};

}  // namespace catena
