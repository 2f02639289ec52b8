// Calls the loader, if the program has one.
#include "device/plugin_source.hpp"

#include <atomic>

namespace catena {
namespace {

constinit std::atomic<PluginSource*> registered{nullptr};

}  // namespace

void set_plugin_source(PluginSource* source) noexcept { registered = source; }

void load_plugins_once() {
    if (PluginSource* const source = registered.load(std::memory_order_acquire)) source->load();
}

std::string with_plugin_report(std::string what) {
    PluginSource* const source = registered;
    return std::move(what) + '\n' +
           (source ? source->report() : "no plugin loader is linked: see catena::loader");
}

std::string plugin_refusals() {
    PluginSource* const source = registered;
    const std::string text = source ? source->refusals() : "";
    return text.empty() ? text : '\n' + text;
}

}  // namespace catena
