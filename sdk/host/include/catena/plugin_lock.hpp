// Writes lock files of plugins.
#pragma once

#include <catena/data_error.hpp>
#include <catena/loader/plugins.hpp>
#include <catena/write_file.hpp>

namespace catena {

// Writes a lock of plugins that read_hashed_manifest() returned, by AtomicFile. Throws PluginError.
inline void write_plugin_lock(const std::filesystem::path& file,
                              std::span<const LoadedPlugin> plugins) try {
    AtomicFile atomic(file, 0755);  // a lock that others can write to is refused
    atomic.write(plugin_lock_text(plugins));
    atomic.commit();
} catch (const DataError& error) {
    throw PluginError(error.what());
}

}  // namespace catena
