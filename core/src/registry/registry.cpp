// Registration, and the choice of kernels.
#include "registry/registry.hpp"

#include "device/context.hpp"
#include "device/diagnostics.hpp"
#include "device/plugin_source.hpp"
#include "registry/attributes.hpp"
#include "registry/registry_check.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace catena {

Registry& Registry::get() {
    static Registry* instance =
        new Registry;  // arrays of static objects may outlive any destructor
    return *instance;
}

const PluginEntry& Registry::add(std::string id, std::filesystem::path file,
                                 const catena_plugin& table) {
    const std::lock_guard lock(mutex_);
    check(id, table);
    auto entry = std::make_unique<PluginEntry>();
    entry->id = std::move(id);
    entry->file = std::move(file);
    entry->table = &table;
    entry->order = static_cast<int>(plugins_.size());
    PluginEntry& plugin = *entry;
    plugins_.push_back(std::move(entry));
    for (std::uint32_t i = 0; i < table.n_functions; ++i) {
        auto function = std::make_unique<FunctionEntry>(*table.functions[i], plugin);
        // Kernels may have come before their function, and may not fit it.
        if (const auto found = kernels_.find(table.functions[i]->name); found != kernels_.end()) {
            for (const KernelEntry& kernel : found->second) try {
                    check_kernel_of(*table.functions[i], *kernel.kernel);
                    function->kernels_.push_back(kernel);
                } catch (const PluginError& error) {
                    host_table().log(nullptr, CATENA_LOG_WARNING,
                                     fmt::format("[plugin] {}: not used: {}",
                                                 kernel.plugin->file.string(), error.what())
                                         .c_str());
                }
        }
        function->set_pin(pin_of(table.functions[i]->name));
        if (table.functions[i]->flags & CATENA_FUNCTION_ADDITION) addition_ = function.get();
        functions_.emplace(table.functions[i]->name, std::move(function));
    }
    for (std::uint32_t i = 0; i < table.n_kernels; ++i) {
        const KernelEntry kernel{table.kernels[i], &plugin};
        kernels_[table.kernels[i]->function].push_back(kernel);
        if (const auto found = functions_.find(std::string_view(table.kernels[i]->function));
            found != functions_.end()) {
            found->second->kernels_.push_back(kernel);
            found->second->forget_selections();
        }
    }
    for (std::uint32_t i = 0; i < table.n_backends; ++i) {
        backends_.push_back(std::make_unique<BackendEntry>(
            BackendEntry{table.backends[i], &plugin, static_cast<int>(backends_.size()), {}}));
    }
    for (std::uint32_t i = 0; i < table.n_extensions; ++i) {
        const catena_extension& added = *table.extensions[i];
        auto& versions = extensions_[{added.device, added.id}];
        std::vector<Offer> offers;
        if (!versions.empty()) offers = versions.back()->sorted;
        offers.push_back({&added, &plugin});
        set_extensions(versions, added.id, std::move(offers));
    }
    epoch_.fetch_add(1, std::memory_order_release);
    return plugin;
}

// Plugins may hold older tables: they stay.
void Registry::set_extensions(Versions& versions, std::string_view id, std::vector<Offer> offers) {
    const std::string_view pin = pin_of(id);
    auto next = std::make_unique<Extensions>();
    next->sorted = std::move(offers);
    std::stable_sort(next->sorted.begin(), next->sorted.end(), [&](const Offer& a, const Offer& b) {
        const bool pin_a = !pin.empty() && a.plugin->id == pin;
        const bool pin_b = !pin.empty() && b.plugin->id == pin;
        if (pin_a != pin_b) return pin_a;
        if (a.extension->priority != b.extension->priority) {
            return a.extension->priority > b.extension->priority;
        }
        return a.plugin->order < b.plugin->order;
    });
    for (const Offer& offer : next->sorted) next->tables.push_back(offer.extension->table);
    next->tables.push_back(nullptr);
    versions.push_back(std::move(next));
}

void Registry::remove(const PluginEntry& plugin) {
    const std::lock_guard lock(mutex_);
    const catena_plugin& table = *plugin.table;
    for (std::uint32_t i = 0; i < table.n_functions; ++i) {
        const auto found = functions_.find(std::string_view(table.functions[i]->name));
        if (found == functions_.end()) continue;
        if (addition() == found->second.get()) addition_ = nullptr;
        gone_.push_back(std::move(found->second));
        functions_.erase(found);
    }
    const auto from_plugin = [&](const KernelEntry& k) { return k.plugin == &plugin; };
    for (auto& [name, kernels] : kernels_) std::erase_if(kernels, from_plugin);
    for (auto& [name, function] : functions_) {
        std::erase_if(function->kernels_, from_plugin);
        function->forget_selections();
        function->gradient_ = nullptr;
    }
    std::erase_if(backends_, [&](const auto& b) { return b->plugin == &plugin; });
    for (std::uint32_t i = 0; i < table.n_extensions; ++i) {
        const catena_extension& gone = *table.extensions[i];
        auto& versions = extensions_[{gone.device, gone.id}];
        auto rest = versions.back()->sorted;
        std::erase_if(rest, [&](const Offer& offer) { return offer.extension == &gone; });
        set_extensions(versions, gone.id, std::move(rest));
    }
    std::erase_if(plugins_, [&](const auto& p) { return p.get() == &plugin; });
    epoch_.fetch_add(1, std::memory_order_release);
}

FunctionEntry* Registry::find(std::string_view name) {
    load_plugins_once();
    const std::lock_guard lock(mutex_);
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second.get();
}

FunctionEntry& Registry::require(std::string_view name) {
    if (FunctionEntry* entry = find(name)) return *entry;
    const std::string guess = diagnostics().nearest(name, false);
    throw PluginError(
        with_plugin_report(fmt::format("no plugin has the function {}{}", name,
                                       guess.empty() ? "" : "; did you mean " + guess + "?")));
}

std::vector<std::string> Registry::function_names() {
    load_plugins_once();
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, entry] : functions_) names.push_back(name);
    return names;
}

std::vector<KernelsWithoutFunction> Registry::kernels_without_function() {
    const std::lock_guard lock(mutex_);
    std::vector<KernelsWithoutFunction> list;
    for (const auto& plugin : plugins_) {
        std::set<std::string_view> seen;
        for (std::uint32_t i = 0; i < plugin->table->n_kernels; ++i) {
            const std::string_view name = plugin->table->kernels[i]->function;
            if (functions_.contains(name) || !seen.insert(name).second) continue;
            list.push_back({plugin->id, std::string(name), diagnostics().nearest(name, true)});
        }
    }
    return list;
}

std::vector<PluginTable> Registry::tables() {
    load_plugins_once();
    const std::lock_guard lock(mutex_);
    std::vector<PluginTable> list;
    for (const auto& plugin : plugins_) list.push_back({plugin->id, plugin->table});
    return list;
}

const void* const* Registry::extensions(const BackendEntry* backend, const char* id) {
    // The last answers of this thread; an id too long for it goes to the map each time.
    struct Answer {
        char id[48];
        const BackendEntry* backend;
        std::uint32_t epoch;
        const void* const* tables;
    };
    static thread_local Answer last[4] = {};
    static thread_local unsigned next = 0;
    const std::uint32_t epoch = epoch_.load(std::memory_order_acquire);
    for (const Answer& a : last) {
        if (a.backend == backend && a.epoch == epoch && std::strcmp(a.id, id) == 0) {
            return a.tables;
        }
    }
    static const void* const none[1] = {nullptr};
    const std::lock_guard lock(mutex_);
    const auto found = extensions_.find({backend ? backend->table->name : "", id});
    const void* const* tables =
        found == extensions_.end() ? none : found->second.back()->tables.data();
    if (const std::size_t length = std::strlen(id); length < sizeof(Answer::id)) {
        Answer& answer = last[next++ % 4];
        std::memcpy(answer.id, id, length + 1);
        answer.backend = backend;
        answer.epoch = epoch;
        answer.tables = tables;
    }
    return tables;
}

std::vector<PluginTable> plugin_tables() { return Registry::get().tables(); }
std::vector<std::string> function_names() { return Registry::get().function_names(); }
const catena_function& function_descriptor(std::string_view name) {
    return Registry::get().require(name).descriptor;
}
}  // namespace catena
