// Pins: which plugin's kernels or extension the user wants first.
#include "registry/registry.hpp"

#include "device/context.hpp"
#include "device/plugin.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace catena {
namespace {

struct Wish {
    std::string name;  // of a function or an extension
    std::string_view plugin;
};

// "relu" is short for "catena.relu".
Wish parse(std::string_view item) {
    const std::size_t equals = std::min(item.find('='), item.size());
    const std::string_view name = item.substr(0, equals);
    const bool is_short = name.find('.') == name.npos;
    return {(is_short ? "catena." : "") + std::string(name),
            item.substr(std::min(equals + 1, item.size()))};
}

}  // namespace

Registry::Registry() {
    const char* list = secure_getenv("CATENA_PIN");
    for (std::string_view rest = list ? list : ""; !rest.empty();) {
        const std::size_t comma = rest.find(',');
        const std::string_view item = rest.substr(0, comma);
        rest = comma == rest.npos ? "" : rest.substr(comma + 1);
        if (item.empty()) continue;
        asked_pins_.emplace_back(item);
        if (const Wish wish = parse(item); !wish.plugin.empty()) pins_[wish.name] = wish.plugin;
    }
}

std::string_view Registry::pin_of(std::string_view name) const {
    const auto found = pins_.find(name);
    return found == pins_.end() ? std::string_view() : found->second;
}

void Registry::pin(std::string_view name, std::string_view plugin) {
    FunctionEntry* const function = find(name);
    const std::lock_guard lock(mutex_);
    std::vector<Versions*> offers;
    for (auto& [place, versions] : extensions_) {
        if (place.second == name) offers.push_back(&versions);
    }
    if (!function && offers.empty()) {
        throw PluginError(
            with_plugin_report(fmt::format("no plugin has the function or extension {}", name)));
    }
    pins_[std::string(name)] = plugin;
    if (function) function->set_pin(plugin);
    for (Versions* versions : offers) set_extensions(*versions, name, versions->back()->sorted);
    epoch_.fetch_add(1, std::memory_order_release);
}

void Registry::report_pins() {
    const std::lock_guard lock(mutex_);
    for (const std::string& item : std::exchange(asked_pins_, {})) {
        const auto [name, plugin] = parse(item);
        const auto is_of = [&, &id = plugin](const auto& offer) { return offer.plugin->id == id; };
        const auto function = functions_.find(name);
        bool known = function != functions_.end();
        bool offered = known && std::ranges::any_of(function->second->kernels_, is_of);
        for (const auto& [place, versions] : extensions_) {
            if (place.second != name) continue;
            known = true;
            offered = offered || std::ranges::any_of(versions.back()->sorted, is_of);
        }
        const auto has_id = [&, &id = plugin](const auto& p) { return p->id == id; };
        std::string_view why;
        if (plugin.empty()) {
            why = "expected FUNCTION=PLUGIN or EXTENSION=PLUGIN";
        } else if (!known) {
            why = "no plugin so far has a function or an extension of that name";
        } else if (std::ranges::none_of(plugins_, has_id)) {
            why = "no plugin of that id is loaded so far";
        } else if (!offered) {
            why = "that plugin has nothing for it so far";
        }
        if (why.empty()) continue;
        host_table().log(nullptr, CATENA_LOG_WARNING,
                         fmt::format("CATENA_PIN: {}: {}", item, why).c_str());
    }
}

void pin_kernels(std::string_view function, std::string_view plugin) {
    Registry::get().pin(function, plugin);
}

}  // namespace catena
