// Pins: which plugin's kernels or extension the user wants first.
#include "device/context.hpp"
#include "registry/registry.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>
#include <ids.hpp>

#include <algorithm>
#include <cstdlib>
#include <ranges>
#include <utility>

namespace catena {

Registry::Registry() {
    const char* list = secure_getenv("CATENA_PIN");
    for (const auto part : std::views::split(std::string_view(list ? list : ""), ',')) {
        const std::string_view item(part.begin(), part.end());
        if (item.empty()) continue;
        const std::size_t equals = std::min(item.find('='), item.size());
        PinWish wish{std::string(item), std::string(stable_id(item.substr(0, equals))),
                     std::string(item.substr(std::min(equals + 1, item.size())))};
        if (wish.name.find('.') == wish.name.npos) wish.name = "catena." + wish.name;
        if (!wish.plugin.empty()) pins_[wish.name] = wish.plugin;
        asked_pins_.push_back(std::move(wish));
    }
}

std::string_view Registry::pin_of(std::string_view name) const {
    const auto found = pins_.find(name);
    return found == pins_.end() ? std::string_view() : found->second;
}

void Registry::pin(std::string_view name, std::string_view plugin) {
    name = stable_id(name);
    FunctionEntry* const function = find(name);
    const std::lock_guard lock(mutex_);
    bool known = function != nullptr;
    for (auto& [place, versions] : extensions_) known = known || place.second == name;
    if (!known) {
        throw PluginError(
            with_plugin_report(fmt::format("no plugin has the function or extension {}", name)));
    }
    pins_[std::string(name)] = plugin;
    if (function) function->set_pin(plugin);
    for (auto& [place, versions] : extensions_)
        if (place.second == name) set_extensions(versions, name, versions.back()->sorted);
    epoch_.fetch_add(1, std::memory_order_release);
}

void Registry::report_pins() {
    const std::lock_guard lock(mutex_);
    for (const PinWish& wish : std::exchange(asked_pins_, {})) {
        const auto is_of = [&](const auto& offer) { return offer.plugin->id == wish.plugin; };
        const auto function = functions_.find(wish.name);
        bool known = function != functions_.end();
        bool offered = known && std::ranges::any_of(function->second->kernels_, is_of);
        for (const auto& [place, versions] : extensions_) {
            if (place.second != wish.name) continue;
            known = true;
            offered = offered || std::ranges::any_of(versions.back()->sorted, is_of);
        }
        if (offered) continue;
        const char* why = "that plugin has nothing for it so far";
        if (wish.plugin.empty()) why = "expected FUNCTION=PLUGIN or EXTENSION=PLUGIN";
        else if (!known) why = "no plugin so far has a function or an extension of that name";
        else if (std::ranges::none_of(plugins_,
                                      [&](const auto& p) { return p->id == wish.plugin; }))
            why = "no plugin of that id is loaded so far";
        tell(CATENA_LOG_WARNING, fmt::format("CATENA_PIN: {}: {}", wish.item, why));
    }
}

void pin_kernels(std::string_view function, std::string_view plugin) {
    Registry::get().pin(function, plugin);
}

}  // namespace catena
