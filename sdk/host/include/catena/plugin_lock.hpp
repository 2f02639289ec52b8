// Writes lock files of plugins.
#pragma once

#include <catena/loader/plugins.hpp>

namespace catena {

// Writes a lock of plugins that read_hashed_manifest() returned, by AtomicFile. Throws PluginError.
void write_plugin_lock(const std::filesystem::path& file, std::span<const LoadedPlugin> plugins);

}  // namespace catena
