// Registration, pins, and tables of extensions.
#include "registry/registry.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>
#include <ids.hpp>
#include <table_rules.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ranges>
#include <utility>

namespace catena {
namespace {

const Broken refused([](const std::string& text) { throw PluginError(text); });

}  // namespace

void check_grad_function(const catena_function& f, const catena_function& g) {
    check_grad_function(f, g, refused);
}

bool comes_before(std::string_view pin, const PluginEntry& a, std::int32_t priority_a,
                  const PluginEntry& b, std::int32_t priority_b) {
    const bool pin_a = !pin.empty() && a.id == pin, pin_b = !pin.empty() && b.id == pin;
    if (pin_a != pin_b) return pin_a;
    return priority_a != priority_b ? priority_a > priority_b : a.order < b.order;
}

Registry& Registry::get() {
    static Registry* instance =
        new Registry;  // arrays of static objects may outlive any destructor
    return *instance;
}

// All of a plugin's table, before anything of it is registered. add() checks the kernels of a function
// that comes later.
void Registry::check(std::string_view id, const catena_plugin& table) {
    check_table(table, {}, refused);
    for (const auto& other : plugins_) {
        if (other->id == id) refused("id {} is already loaded from {}", id, other->file.string());
    }
    const auto known = [&](std::string_view name) -> const catena_function* {
        const auto found = functions_.find(name);
        return found == functions_.end() ? nullptr : &found->second->descriptor;
    };
    check_rules(table, known, refused);
    const char* sums = addition() ? addition()->descriptor.name : nullptr;
    for (const catena_function* f : std::span(table.functions, table.n_functions)) {
        if (const auto found = functions_.find(std::string_view(f->name));
            found != functions_.end()) {
            refused("function {} is already there, from {}", f->name,
                    found->second->plugin.file.string());
        }
        if (!(f->flags & CATENA_FUNCTION_ADDITION)) continue;
        if (sums) refused("function {} claims to be the addition, which is {}", f->name, sums);
        sums = f->name;
    }
    for (const catena_backend* b : std::span(table.backends, table.n_backends)) {
        for (const auto& other : backends_) {
            if (std::strcmp(other->table->name, b->name) == 0) {
                refused("backend {} is already there, from {}", b->name,
                        other->plugin->file.string());
            }
        }
    }
}

const PluginEntry& Registry::add(std::string id, std::filesystem::path file,
                                 const catena_plugin& table) {
    const std::lock_guard lock(mutex_);
    check(id, table);
    const int order = static_cast<int>(plugins_.size());
    PluginEntry& plugin = *plugins_.emplace_back(
        std::make_unique<PluginEntry>(PluginEntry{std::move(id), std::move(file), &table, order}));
    for (const catena_function* f : std::span(table.functions, table.n_functions)) {
        auto function = std::make_unique<FunctionEntry>(*f, plugin);
        // Kernels may have come before their function, and may not fit it.
        if (const auto found = kernels_.find(f->name); found != kernels_.end()) {
            for (const KernelEntry& kernel : found->second) try {
                    check_kernel_of(*f, *kernel.kernel, refused);
                    function->kernels_.push_back(kernel);
                } catch (const PluginError& error) {
                    tell(CATENA_LOG_WARNING,
                         fmt::format("[plugin] {}: not used: {}", kernel.plugin->file.string(),
                                     error.what()));
                }
        }
        function->set_pin(pin_of(f->name));
        if (f->flags & CATENA_FUNCTION_ADDITION) addition_ = function.get();
        functions_.emplace(f->name, std::move(function));
    }
    for (const catena_kernel* k : std::span(table.kernels, table.n_kernels)) {
        kernels_[k->function].push_back({k, &plugin});
        if (const auto found = functions_.find(std::string_view(k->function));
            found != functions_.end()) {
            found->second->kernels_.push_back({k, &plugin});
            found->second->forget_selections();
        }
    }
    for (const catena_backend* b : std::span(table.backends, table.n_backends))
        backends_.push_back(std::make_unique<BackendEntry>(BackendEntry{b, &plugin, {}}));
    for (const catena_extension* e : std::span(table.extensions, table.n_extensions)) {
        const std::string name(stable_id(e->id));
        auto& versions = extensions_[{e->device, name}];
        std::vector<Offer> offers;
        if (!versions.empty()) offers = versions.back()->sorted;
        offers.push_back({e, &plugin});
        set_extensions(versions, name, std::move(offers));
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
        return comes_before(pin, *a.plugin, a.extension->priority, *b.plugin,
                            b.extension->priority);
    });
    for (const Offer& offer : next->sorted) next->tables.push_back(offer.extension->table);
    next->tables.push_back(nullptr);
    versions.push_back(std::move(next));
}

void Registry::remove(const PluginEntry& plugin) {
    const std::lock_guard lock(mutex_);
    const catena_plugin& table = *plugin.table;
    for (const catena_function* f : std::span(table.functions, table.n_functions)) {
        const auto found = functions_.find(std::string_view(f->name));
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
    for (const catena_extension* gone : std::span(table.extensions, table.n_extensions)) {
        const std::string id(stable_id(gone->id));
        auto& versions = extensions_[{gone->device, id}];
        auto rest = versions.back()->sorted;
        std::erase_if(rest, [&](const Offer& offer) { return offer.extension == gone; });
        set_extensions(versions, id, std::move(rest));
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
    const std::string guess = diagnostics().nearest(name);
    throw PluginError(
        with_plugin_report(fmt::format("no plugin has the function {}{}", name,
                                       guess.empty() ? "" : "; did you mean " + guess + "?")));
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
        if (a.backend == backend && a.epoch == epoch && std::strcmp(a.id, id) == 0) return a.tables;
    }
    static const void* const none[1] = {nullptr};
    const std::lock_guard lock(mutex_);
    const auto found =
        extensions_.find({backend ? backend->table->name : "", std::string(stable_id(id))});
    const void* const* tables =
        found == extensions_.end() ? none : found->second.back()->tables.data();
    if (std::strlen(id) < sizeof(Answer::id)) {
        Answer& answer = last[next++ % 4];
        std::strcpy(answer.id, id);
        answer.backend = backend;
        answer.epoch = epoch;
        answer.tables = tables;
    }
    return tables;
}

// ---- pins: which plugin's kernels or extension the user wants first

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

void pin_kernels(std::string_view name, std::string_view plugin) {
    name = stable_id(name);
    Registry& registry = Registry::get();
    FunctionEntry* const function = registry.find(name);
    const std::lock_guard lock(registry.mutex());
    std::vector<Registry::Versions*> places;
    for (auto& [place, versions] : registry.extensions_)
        if (place.second == name) places.push_back(&versions);
    if (!function && places.empty()) {
        throw PluginError(
            with_plugin_report(fmt::format("no plugin has the function or extension {}", name)));
    }
    registry.pins_[std::string(name)] = plugin;
    if (function) function->set_pin(plugin);
    for (Registry::Versions* place : places)
        registry.set_extensions(*place, name, place->back()->sorted);
    registry.epoch_.fetch_add(1, std::memory_order_release);
}

std::vector<PluginTable> plugin_tables() {
    load_plugins_once();
    Registry& registry = Registry::get();
    const std::lock_guard lock(registry.mutex());
    std::vector<PluginTable> list;
    for (const auto& plugin : registry.plugins_) list.push_back({plugin->id, plugin->table});
    return list;
}

std::vector<std::string> function_names() {
    load_plugins_once();
    Registry& registry = Registry::get();
    const std::lock_guard lock(registry.mutex());
    std::vector<std::string> names;
    for (const auto& [name, entry] : registry.functions()) names.push_back(name);
    return names;
}

const catena_function& function_descriptor(std::string_view name) {
    return Registry::get().require(name).descriptor;
}

}  // namespace catena
