// Finds a plugin's entry without catena's loader.
#pragma once

#include <catena/abi/plugin.h>

#include <dlfcn.h>

// Returns null if the file cannot be loaded.
inline decltype(&catena_plugin_entry_v1) entry_of(const char* file) {
    void* const library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    void* const entry = library == nullptr ? nullptr : dlsym(library, "catena_plugin_entry_v1");
    return reinterpret_cast<decltype(&catena_plugin_entry_v1)>(entry);
}
