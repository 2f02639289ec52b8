// Names that nothing has: functions, devices, pins; and what was meant.
#include "diagnostics.hpp"

#include <catena/diagnostics/kernels.hpp>

#include <ids.hpp>

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

namespace catena {
namespace {

// "catena.Adam_Update" -> "adamupdate": what people mix up.
std::string folded(std::string_view name) {
    if (name.starts_with("catena.")) name.remove_prefix(7);
    std::string text;
    for (const char c : name) {
        if (c != '_') text += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return text;
}

std::string_view last_word(std::string_view name) { return name.substr(name.rfind('.') + 1); }

std::string nearest(std::string_view name, bool internal) {
    Registry& registry = Registry::get();
    const std::lock_guard lock(registry.mutex());
    const std::string wanted = folded(name);
    const bool bare = wanted.find('.') == wanted.npos;  // whose it is was left out
    std::size_t least = last_word(wanted).size() / 3 + 1;
    std::string guess;
    for (const auto& [candidate, entry] : registry.functions()) {
        if (!internal && (entry->descriptor.flags & CATENA_FUNCTION_INTERNAL)) continue;
        const std::string known = folded(candidate);
        std::size_t d = edit_distance(wanted, known);
        if (bare) d = std::min(d, edit_distance(wanted, last_word(known)));
        if (d < least) guess = candidate;
        least = std::min(least, d);
    }
    return guess;
}

}  // namespace

std::string CoreDiagnostics::nearest(std::string_view function) {
    return catena::nearest(function, false);
}

std::vector<KernelsWithoutFunction> CoreDiagnostics::kernels_without_function() {
    Registry& registry = Registry::get();
    const std::lock_guard lock(registry.mutex());
    std::vector<KernelsWithoutFunction> list;
    for (const auto& plugin : registry.plugins_) {
        std::set<std::string_view> seen;
        for (std::uint32_t i = 0; i < plugin->table->n_kernels; ++i) {
            const std::string_view name = plugin->table->kernels[i]->function;
            if (registry.functions().contains(name) || !seen.insert(name).second) continue;
            list.push_back({plugin->id, std::string(name), catena::nearest(name, true)});
        }
    }
    return list;
}

void CoreDiagnostics::report_pins() {
    Registry& registry = Registry::get();
    const std::lock_guard lock(registry.mutex());
    for (const Registry::PinWish& wish : std::exchange(registry.asked_pins_, {})) {
        const auto is_of = [&](const auto& offer) { return offer.plugin->id == wish.plugin; };
        const auto function = registry.functions_.find(wish.name);
        bool known = function != registry.functions_.end();
        bool offered = known && std::ranges::any_of(function->second->kernels(), is_of);
        for (const auto& [place, versions] : registry.extensions_) {
            if (place.second != wish.name) continue;
            known = true;
            offered = offered || std::ranges::any_of(versions.back()->sorted, is_of);
        }
        if (offered) continue;
        const char* why = "that plugin has nothing for it so far";
        if (wish.plugin.empty()) why = "expected FUNCTION=PLUGIN or EXTENSION=PLUGIN";
        else if (!known) why = "no plugin so far has a function or an extension of that name";
        else if (std::ranges::none_of(registry.plugins_,
                                      [&](const auto& p) { return p->id == wish.plugin; }))
            why = "no plugin of that id is loaded so far";
        tell(CATENA_LOG_WARNING, fmt::format("CATENA_PIN: {}: {}", wish.item, why));
    }
}

void CoreDiagnostics::no_device(std::string_view name, std::string_view backend) {
    std::string there;
    std::vector<std::string> names;
    for (const BackendInfo& b : Registry::get().backends()) {
        there += fmt::format("{}{} ({} device{})", there.empty() ? "" : ", ", b.name,
                             b.devices == 0 ? "no" : std::to_string(b.devices),
                             b.devices > 1 ? "s" : "");
        names.push_back(b.name);
    }
    const std::string guess = nearest_name(backend, names, backend.size() / 2 + 1);
    raise<DeviceError>(
        "[device] name: expected a device of {}, got '{}'{}{}\nplugins bring backends; 'catena "
        "plugins' or to_string(plugin_report()) has the details",
        there, name, guess.empty() ? "" : fmt::format("; did you mean {}?", guess),
        plugin_refusals());
}

std::string nearest_function(std::string_view name) {
    load_plugins_once();
    return nearest(name, false);
}

namespace {

// When the library is loaded, the core gets its hooks.
constinit CoreDiagnostics installed;
[[maybe_unused]] const bool registered = (registered_diagnostics.store(&installed), true);

}  // namespace
}  // namespace catena
