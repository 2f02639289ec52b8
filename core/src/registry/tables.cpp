// The tables of the loaded plugins.
#include "registry/registry.hpp"

namespace catena {

std::vector<PluginTable> Registry::tables() {
    load_default_plugins();
    const std::lock_guard lock(mutex_);
    std::vector<PluginTable> list;
    for (const auto& plugin : plugins_) list.push_back({plugin->info.id, plugin->table});
    return list;
}

std::vector<PluginTable> plugin_tables() { return Registry::get().tables(); }

}  // namespace catena
