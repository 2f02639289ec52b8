// Writes lock files of plugins.
#include <catena/plugin_lock.hpp>

#include <catena/core/error.hpp>
#include <catena/data_error.hpp>
#include <catena/write_file.hpp>

namespace catena {

void write_plugin_lock(const std::filesystem::path& file, std::span<const LoadedPlugin> plugins) {
    try {
        AtomicFile atomic(file, 0755);  // a lock that others can write to is refused
        atomic.write(plugin_lock_text(plugins));
        atomic.commit();
    } catch (const DataError& error) {
        throw PluginError(error.what());
    }
}

}  // namespace catena
