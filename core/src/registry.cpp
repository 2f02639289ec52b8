// Registration, and the choice of kernels.
#include "registry.hpp"

#include "attributes.hpp"
#include "context.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <deque>

namespace catena {

namespace {

catena_function whole(const catena_function& given) {
    catena_function f{};
    std::memcpy(&f, &given, std::min<std::size_t>(given.struct_size, sizeof(f)));
    f.struct_size = sizeof(f);
    return f;
}

}  // namespace

FunctionEntry::FunctionEntry(const catena_function& given, const PluginEntry& from)
    : descriptor(whole(given)), plugin(from) {
    const catena_function& d = descriptor;
    std::vector<std::string_view> names;
    const auto index_of = [&](std::string_view name) {
        const auto found = std::find(names.begin(), names.end(), name);
        if (found != names.end()) return static_cast<int>(found - names.begin());
        names.push_back(name);
        return static_cast<int>(names.size()) - 1;
    };
    min_inputs = 0;
    mutates = false;
    for (std::uint32_t i = 0; i < d.n_inputs; ++i) {
        input_type.push_back(index_of(d.inputs[i]->type_var));
        if (!(d.inputs[i]->flags & CATENA_PORT_OPTIONAL)) min_inputs = i + 1;
        mutates = mutates || (d.inputs[i]->flags & CATENA_PORT_MUTATED);
    }
    for (std::uint32_t i = 0; i < d.n_outputs; ++i) {
        output_type.push_back(index_of(d.outputs[i]->type_var));
    }
    variadic = d.n_inputs && (d.inputs[d.n_inputs - 1]->flags & CATENA_PORT_VARIADIC);
    type_vars = static_cast<int>(names.size());
    defaults = nullptr;
    const auto required = [&](std::uint32_t i) { return d.attrs[i]->flags & CATENA_ATTR_REQUIRED; };
    bool all_optional = true;
    for (std::uint32_t i = 0; i < d.n_attrs; ++i) all_optional = all_optional && !required(i);
    if (all_optional) defaults = BoundAttributes::make_defaults(d);
}

std::string FunctionEntry::input_name(std::uint32_t i) const {
    if (i < descriptor.n_inputs && !(variadic && i + 1 == descriptor.n_inputs)) {
        return descriptor.inputs[i]->name;
    }
    return fmt::format("{}[{}]", descriptor.inputs[descriptor.n_inputs - 1]->name,
                       i + 1 - descriptor.n_inputs);
}

FunctionEntry& FunctionEntry::gradient() {
    if (FunctionEntry* known = gradient_.load(std::memory_order_acquire)) return *known;
    FunctionEntry& found = Registry::get().require(descriptor.grad_function);
    check_grad_function(descriptor, found.descriptor);
    gradient_.store(&found, std::memory_order_release);
    return found;
}

void FunctionEntry::forget_selections() {
    for (auto& slot : cache_) slot.store(nullptr, std::memory_order_release);
    selections_.clear();
}

void FunctionEntry::set_pin(std::string_view wish) {
    pin_ = wish;
    pinned_.store(!pin_.empty(), std::memory_order_relaxed);
    forget_selections();
}

// Collects what fits key, best first: pinned plugin, priority, order of loading, name of plugin.
const Selection& FunctionEntry::collect(std::uint64_t key, DeviceState& device) {
    const std::lock_guard lock(Registry::get().mutex());
    for (const Selection* made : selections_) {  // pushed out of the cache
        if (made->key != key) continue;
        cache_[key * 0x9e3779b97f4a7c15u >> 60].store(made, std::memory_order_release);
        return *made;
    }
    const bool deterministic = key >> 16 & 1;
    std::vector<KernelEntry> eligible;
    for (const KernelEntry& entry : kernels_) {
        const catena_kernel& k = *entry.kernel;
        if (device.backend.table->name != std::string_view(k.device)) continue;
        if (descriptor.version < k.version_min || descriptor.version > k.version_max) continue;
        if (deterministic && !(k.flags & CATENA_KERNEL_DETERMINISTIC)) continue;
        if (k.isa && *k.isa && !device.table.supports_isa(device.dev, k.isa)) continue;
        bool fits = type_vars == 0;
        for (std::uint32_t row = 0; row < k.n_types && !fits; ++row) {
            fits = true;
            for (int t = 0; t < type_vars; ++t) {
                const int want = static_cast<int>(key >> (4 * t) & 15);
                fits = fits && dtype_index(k.types[row * static_cast<std::uint32_t>(type_vars) +
                                                   static_cast<std::uint32_t>(t)]) == want;
            }
        }
        if (fits) eligible.push_back(entry);
    }
    std::stable_sort(eligible.begin(), eligible.end(),
                     [&](const KernelEntry& a, const KernelEntry& b) {
                         const bool pin_a = !pin_.empty() && a.plugin->info.id == pin_;
                         const bool pin_b = !pin_.empty() && b.plugin->info.id == pin_;
                         if (pin_a != pin_b) return pin_a;
                         if (a.kernel->priority != b.kernel->priority) {
                             return a.kernel->priority > b.kernel->priority;
                         }
                         if (a.plugin->order != b.plugin->order) {
                             return a.plugin->order < b.plugin->order;
                         }
                         return a.plugin->info.id < b.plugin->info.id;
                     });
    static auto* const all = new std::deque<Selection>;
    Selection* selection = &all->emplace_back();
    selection->key = key;
    for (const KernelEntry& entry : eligible) {
        const bool of_pin = !pin_.empty() && entry.plugin->info.id == pin_;
        if (of_pin) selection->pin = entry.plugin;
        if (entry.kernel->phase == CATENA_PHASE_BACKWARD) {
            if (entry.kernel->variant) continue;
            selection->backward.push_back(entry.kernel);
            selection->n_pinned += of_pin;
            continue;
        }
        const catena_kernel* paired = nullptr;
        if (entry.kernel->variant) {
            for (const KernelEntry& other : eligible) {
                if (other.kernel->phase == CATENA_PHASE_BACKWARD && other.kernel->variant &&
                    other.plugin == entry.plugin &&
                    std::strcmp(other.kernel->variant, entry.kernel->variant) == 0) {
                    paired = other.kernel;
                    break;
                }
            }
        }
        selection->forward.push_back({entry.kernel, paired});
    }
    selections_.push_back(selection);
    for (auto& slot : cache_) {
        if (!slot.load(std::memory_order_relaxed)) {
            slot.store(selection, std::memory_order_release);
            return *selection;
        }
    }
    cache_[key * 0x9e3779b97f4a7c15u >> 60].store(selection, std::memory_order_release);
    return *selection;
}

Registry& Registry::get() {
    static Registry* instance =
        new Registry;  // arrays of static objects may outlive any destructor
    return *instance;
}

Registry::Registry() {
    const char* list = secure_getenv("CATENA_PIN");
    for (std::string_view rest = list ? list : ""; !rest.empty();) {
        const std::size_t comma = rest.find(',');
        const std::string_view item = rest.substr(0, comma);
        rest = comma == rest.npos ? "" : rest.substr(comma + 1);
        if (item.empty()) continue;
        asked_pins_.emplace_back(item);
        if (const std::size_t equals = item.find('='); equals != item.npos) {
            pins_[std::string(item.substr(0, equals))] = item.substr(equals + 1);
        }
    }
}

std::string_view Registry::pin_of(std::string_view name) const {
    const auto found = pins_.find(name);
    return found == pins_.end() ? std::string_view() : found->second;
}

const PluginEntry& Registry::add(LoadedPlugin info, const catena_plugin& table) {
    const std::lock_guard lock(mutex_);
    check(info, table);
    auto entry = std::make_unique<PluginEntry>();
    entry->info = std::move(info);
    entry->table = &table;
    entry->order = static_cast<int>(plugins_.size());
    PluginEntry& plugin = *entry;
    plugins_.push_back(std::move(entry));
    for (std::uint32_t i = 0; i < table.n_functions; ++i) {
        auto function = std::make_unique<FunctionEntry>(*table.functions[i], plugin);
        // Kernels may have come before their function.
        if (const auto found = kernels_.find(table.functions[i]->name); found != kernels_.end()) {
            function->kernels_ = found->second;
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
        const bool pin_a = !pin.empty() && a.plugin->info.id == pin;
        const bool pin_b = !pin.empty() && b.plugin->info.id == pin;
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
    load_default_plugins();
    const std::lock_guard lock(mutex_);
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second.get();
}

std::string Registry::missing(std::string_view what) {
    return fmt::format("{}\n{}", what, to_string(plugin_report()));
}

FunctionEntry& Registry::require(std::string_view name) {
    if (FunctionEntry* entry = find(name)) return *entry;
    throw PluginError(missing(fmt::format("no plugin has the function {}", name)));
}

std::vector<std::string> Registry::function_names() {
    load_default_plugins();
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, entry] : functions_) names.push_back(name);
    return names;
}

std::vector<KernelInfo> Registry::kernels_of(std::string_view name) {
    FunctionEntry& entry = require(name);
    const std::lock_guard lock(mutex_);
    std::vector<KernelInfo> list;
    for (const KernelEntry& k : entry.kernels_) {
        KernelInfo info{k.plugin->info.id,
                        k.kernel->device,
                        k.kernel->isa ? k.kernel->isa : "",
                        k.kernel->variant ? k.kernel->variant : "",
                        k.kernel->phase,
                        k.kernel->priority,
                        {}};
        for (std::uint32_t row = 0; row < k.kernel->n_types; ++row) {
            std::vector<std::string> types;
            for (int t = 0; t < entry.type_vars; ++t) {
                types.push_back(
                    catena::name(k.kernel->types[row * static_cast<std::uint32_t>(entry.type_vars) +
                                                 static_cast<std::uint32_t>(t)]));
            }
            info.dtypes.push_back(std::move(types));
        }
        list.push_back(std::move(info));
    }
    return list;
}

void Registry::pin(std::string_view name, std::string_view plugin) {
    FunctionEntry* const function = find(name);
    const std::lock_guard lock(mutex_);
    std::vector<Versions*> offers;
    for (auto& [place, versions] : extensions_) {
        if (place.second == name) offers.push_back(&versions);
    }
    if (!function && offers.empty()) {
        throw PluginError(missing(fmt::format("no plugin has the function or extension {}", name)));
    }
    pins_[std::string(name)] = plugin;
    if (function) function->set_pin(plugin);
    for (Versions* versions : offers) set_extensions(*versions, name, versions->back()->sorted);
    epoch_.fetch_add(1, std::memory_order_release);
}

void Registry::report_pins() {
    const std::lock_guard lock(mutex_);
    for (const std::string& item : std::exchange(asked_pins_, {})) {
        const std::size_t equals = item.find('=');
        const std::string name = item.substr(0, equals);
        std::string_view why;
        if (equals == item.npos) {
            why = "expected FUNCTION=PLUGIN or EXTENSION=PLUGIN";
        } else if (!functions_.contains(name) &&
                   std::none_of(extensions_.begin(), extensions_.end(),
                                [&](const auto& e) { return e.first.second == name; })) {
            why = "no plugin so far has a function or an extension of that name";
        } else if (std::none_of(plugins_.begin(), plugins_.end(), [&](const auto& p) {
                       return p->info.id == item.substr(equals + 1);
                   })) {
            why = "no plugin of that id is loaded so far";
        }
        if (why.empty()) continue;
        host_table().log(nullptr, CATENA_LOG_WARNING,
                         fmt::format("CATENA_PIN: {}: {}", item, why).c_str());
    }
}

const void* const* Registry::extensions(const DeviceState& device, const char* id) {
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
        if (a.backend == &device.backend && a.epoch == epoch && std::strcmp(a.id, id) == 0) {
            return a.tables;
        }
    }
    static const void* const none[1] = {nullptr};
    const std::lock_guard lock(mutex_);
    const auto found = extensions_.find({device.backend.table->name, id});
    const void* const* tables =
        found == extensions_.end() ? none : found->second.back()->tables.data();
    if (const std::size_t length = std::strlen(id); length < sizeof(Answer::id)) {
        Answer& answer = last[next++ % 4];
        std::memcpy(answer.id, id, length + 1);
        answer.backend = &device.backend;
        answer.epoch = epoch;
        answer.tables = tables;
    }
    return tables;
}

std::vector<std::string> function_names() { return Registry::get().function_names(); }
const catena_function& function_descriptor(std::string_view name) {
    return Registry::get().require(name).descriptor;
}
std::vector<KernelInfo> kernels_of(std::string_view function) {
    return Registry::get().kernels_of(function);
}
void pin_kernels(std::string_view function, std::string_view plugin) {
    Registry::get().pin(function, plugin);
}

}  // namespace catena
