// Registration, pins, tables of extensions, devices by name.
#include "registry/registry.hpp"

#include <limits.hpp>
#include <table_rules.hpp>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ranges>

namespace catena {
namespace {

const Broken refused([](const std::string& text) { throw PluginError(text); });

// Returns the number of the backend's devices, or 0 and why there is none.
std::pair<int, std::string> count(const BackendEntry& backend) {
    catena_ctx ctx;
    std::int32_t n = 0;
    const PluginStep step(backend.plugin->file, "count()");
    const catena_status status = backend.table->count(&ctx, &n);
    if (status == CATENA_OK && n > 0 && n <= most_devices) return {n, ""};
    if (!ctx.error.empty()) return {0, one_line(ctx.error)};
    if (status) return {0, fmt::format("status {}", status)};
    if (n <= 0) return {0, "it found none"};
    return {0, fmt::format("expected at most {} devices, got {}", most_devices, n)};
}

}  // namespace

Registry& Registry::get() {
    // Never deleted, because static objects that hold arrays may be destroyed later.
    static Registry* instance = new Registry;
    return *instance;
}

// Checks a plugin's table before any of it is registered. add() checks kernels of later functions.
void Registry::check(std::string_view id, const catena_plugin& table) {
    check_table(table, {}, refused);
    for (const auto& other : plugins_)
        if (other->id == id) refused("id {} is already loaded from {}", id, other->file.string());
    const auto known = [&](std::string_view name) -> const catena_function* {
        const FunctionEntry* const there = loaded(name);
        return there ? &there->descriptor : nullptr;
    };
    check_rules(table, known, refused);
    const char* sums = addition() ? addition()->descriptor.name : nullptr;
    for (const catena_function* f : std::span(table.functions, table.n_functions)) {
        if (const FunctionEntry* there = loaded(f->name))
            refused("function {} is already registered by {}", f->name,
                    there->plugin.file.string());
        if (!(f->flags & CATENA_FUNCTION_ADDITION)) continue;
        if (sums) refused("function {} claims to be the addition, which is {}", f->name, sums);
        sums = f->name;
    }
    for (const catena_backend* b : std::span(table.backends, table.n_backends)) {
        for (const auto& other : backends_) {
            if (std::strcmp(other->table->name, b->name) == 0) {
                refused("backend {} is already registered by {}", b->name,
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
        // Kernels may be registered before their function; those that do not fit it are not used.
        if (const auto found = kernels_.find(f->name); found != kernels_.end()) {
            for (const KernelEntry& kernel : found->second) try {
                    check_kernel_of(*f, *kernel.table, refused);
                    function->kernels_.push_back(kernel);
                } catch (const PluginError& error) {
                    tell(CATENA_LOG_WARNING,
                         fmt::format("[plugin] {}: not used: {}", kernel.plugin->file.string(),
                                     error.what()));
                }
        }
        function->forget_selections();
        if (f->flags & CATENA_FUNCTION_ADDITION) addition_ = function.get();
        functions_.emplace(f->name, std::move(function));
    }
    for (const catena_kernel* k : std::span(table.kernels, table.n_kernels)) {
        kernels_[k->function].push_back({k, &plugin});
        if (FunctionEntry* const function = loaded(k->function)) {
            function->kernels_.push_back({k, &plugin});
            function->forget_selections();
        }
    }
    for (const catena_backend* b : std::span(table.backends, table.n_backends))
        backends_.push_back(std::make_unique<BackendEntry>(BackendEntry{b, &plugin, {}}));
    for (const catena_extension* e : std::span(table.extensions, table.n_extensions)) {
        auto& versions = extensions_[{e->device, e->id}];
        Offers offers;
        if (!versions.empty()) offers = versions.back().sorted;
        offers.push_back({e, &plugin});
        set_extensions(versions, e->id, std::move(offers));
    }
    epoch_.fetch_add(1, std::memory_order_release);
    return plugin;
}

// Adds a version of the list of tables. Older versions stay valid, because plugins may hold them.
void Registry::set_extensions(Versions& versions, std::string_view id, Offers offers) {
    sort(offers, pin_of(id));
    std::vector<const void*> tables;
    for (const auto& offer : offers) tables.push_back(offer.table->table);
    tables.push_back(nullptr);
    versions.push_back({std::move(offers), std::move(tables)});
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
    for (auto& backend : backends_)
        if (backend->plugin == &plugin) gone_.push_back(std::move(backend));
    std::erase(backends_, nullptr);
    for (const catena_extension* gone : std::span(table.extensions, table.n_extensions)) {
        auto& versions = extensions_[{gone->device, gone->id}];
        auto rest = versions.back().sorted;
        std::erase_if(rest, [&](const auto& offer) { return offer.table == gone; });
        set_extensions(versions, gone->id, std::move(rest));
    }
    for (auto& entry : plugins_)
        if (entry.get() == &plugin) gone_.push_back(std::move(entry));
    std::erase(plugins_, nullptr);
    epoch_.fetch_add(1, std::memory_order_release);
}

FunctionEntry* Registry::find(std::string_view name) {
    load_plugins_once();
    const std::lock_guard lock(mutex_);
    return loaded(name);
}

FunctionEntry* Registry::loaded(std::string_view name) {
    const auto found = functions_.find(name);
    return found == functions_.end() ? nullptr : found->second.get();
}

FunctionEntry& Registry::require(std::string_view name) {
    if (FunctionEntry* entry = find(name)) return *entry;
    const std::string text = fmt::format("no plugin has the function {}", name);
    const std::string hint = diagnostics().suggestion(name);
    if (!hint.empty()) throw PluginError(text + "; " + hint + plugin_refusals());
    throw PluginError(with_plugin_report(text));
}

const void* const* Registry::extensions(const BackendEntry* backend, const char* id) {
    // Caches the thread's last answers. An id that is too long for Answer::id is looked up each time.
    struct Answer {
        char id[48];
        const BackendEntry* backend;
        std::uint32_t epoch;
        const void* const* tables;
    };
    static thread_local Answer last[4] = {};
    static thread_local unsigned next = 0;
    const std::uint32_t epoch = epoch_.load(std::memory_order_acquire);
    for (const Answer& a : last)
        if (a.backend == backend && a.epoch == epoch && std::strcmp(a.id, id) == 0) return a.tables;
    static const void* const none[1] = {nullptr};
    const std::lock_guard lock(mutex_);
    const auto found = extensions_.find({backend ? backend->table->name : "", id});
    const void* const* tables =
        found == extensions_.end() ? none : found->second.back().tables.data();
    if (std::strlen(id) < sizeof(Answer::id)) {
        Answer& answer = last[next++ % 4] = {{}, backend, epoch, tables};
        std::strcpy(answer.id, id);
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
        PinWish wish{std::string(item), std::string(item.substr(0, equals)),
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
    if (function) function->forget_selections();
    for (Registry::Versions* place : places)
        registry.set_extensions(*place, name, place->back().sorted);
    registry.epoch_.fetch_add(1, std::memory_order_release);
}

std::vector<PluginTable> plugin_tables(bool search) {
    if (search) load_plugins_once();
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
    const auto names = std::views::keys(registry.functions_);
    return {names.begin(), names.end()};
}

const void* extension(const char* id) {
    load_plugins_once();
    return *Registry::get().extensions(nullptr, id);
}

std::vector<KernelTable> kernel_tables(std::string_view function) {
    const FunctionEntry& entry = Registry::get().require(function);
    const std::lock_guard lock(Registry::get().mutex());
    std::vector<KernelTable> list;
    for (const KernelEntry& k : entry.kernels()) list.push_back({k.plugin->id, k.table});
    return list;
}

std::vector<PinWish> take_pin_wishes() {
    const std::lock_guard lock(Registry::get().mutex());
    return std::exchange(Registry::get().asked_pins_, {});
}

const catena_function& function_descriptor(std::string_view name) {
    return Registry::get().require(name).descriptor;
}

// ---- devices of the registered backends, by name

std::vector<BackendInfo> Registry::backends() {
    const std::lock_guard lock(mutex_);
    std::vector<BackendInfo> all;
    for (const auto& backend : backends_) {
        const catena_backend& table = *backend->table;
        const auto [devices, reason] = count(*backend);
        all.push_back({table.name, table.doc ? table.doc : "", backend->plugin->id, devices, reason,
                       (table.flags & CATENA_BACKEND_HOST_MEMORY) != 0,
                       (table.flags & CATENA_BACKEND_ASYNC) != 0});
    }
    return all;
}

DeviceState& Registry::open(BackendEntry& backend, int ordinal) {
    const auto slot = static_cast<std::size_t>(ordinal);
    if (backend.devices.size() <= slot) backend.devices.resize(slot + 1);
    if (!backend.devices[slot]) {
        const std::uint64_t value = seed_ ? *seed_ : initial_seed();
        auto state =
            std::make_unique<DeviceState>(backend, ordinal, static_cast<int>(opened_.size()));
        seed(value, Device(state.get()));
        opened_.push_back(state.get());
        backend.devices[slot] = std::move(state);
    }
    return *backend.devices[slot];
}

Device Device::get(std::string_view name) {
    load_plugins_once();
    Registry& registry = Registry::get();
    const std::lock_guard lock(registry.mutex());
    const std::size_t colon = name.find(':');
    const std::string_view kind = name.substr(0, colon);
    int ordinal = 0;
    if (colon != std::string_view::npos) {
        const std::string_view digits = name.substr(colon + 1);
        const auto [end, error] = std::from_chars(digits.begin(), digits.end(), ordinal);
        if (error != std::errc() || end != digits.end() || ordinal < 0)
            raise<DeviceError>("[device] name: expected NAME:ORDINAL, got '{}'", name);
    }
    for (const auto& backend : registry.backends_) {
        if (backend->table->name != kind) continue;
        const auto [n, reason] = count(*backend);
        if (ordinal < n) return Device(&registry.open(*backend, ordinal));
        if (n == 0) {
            raise<DeviceError>("[device] {}: expected a device, got none: {}", backend->table->name,
                               reason);
        }
        raise<DeviceError>("[device] {}: expected an ordinal below {}, got {}", kind, n, ordinal);
    }
    if (!registry.backends_.empty()) diagnostics().no_device(name, kind);
    throw DeviceError(
        with_plugin_report(fmt::format("[device] {}: expected a plugin with {}, got none", name,
                                       registry.backends_.empty() ? "backends" : "this backend")));
}

DeviceState& default_device() {
    Registry& registry = Registry::get();
    if (DeviceState* known = registry.default_device_.load(std::memory_order_acquire))
        return *known;
    load_plugins_once();
    const std::lock_guard lock(registry.mutex());
    for (const bool host_memory : {true, false}) {
        for (const auto& backend : registry.backends_) {
            const bool has = backend->table->flags & CATENA_BACKEND_HOST_MEMORY;
            if (has != host_memory || count(*backend).first < 1) continue;
            DeviceState& state = registry.open(*backend, 0);
            registry.default_device_.store(&state, std::memory_order_release);
            return state;
        }
    }
    throw DeviceError(with_plugin_report("no plugin has a backend with a device"));
}

std::vector<BackendInfo> Device::backends() {
    load_plugins_once();
    return Registry::get().backends();
}

std::vector<std::string> Device::list() {
    std::vector<std::string> names;
    for (const BackendInfo& backend : backends())
        for (int i = 0; i < backend.devices; ++i)
            names.push_back(fmt::format("{}:{}", backend.name, i));
    return names;
}

std::vector<Device> Device::opened() {
    Registry& registry = Registry::get();
    const std::lock_guard lock(registry.mutex());
    return {registry.opened_.begin(), registry.opened_.end()};
}

std::span<const void* const> Device::extensions(const char* id) const {
    const BackendEntry& backend = state_of(*this).backend;
    load_plugins_once();
    const void* const* tables = Registry::get().extensions(&backend, id);
    std::size_t n = 0;
    while (tables[n]) ++n;
    return {tables, n};
}

void seed(std::uint64_t value) {
    Registry& registry = Registry::get();
    const std::lock_guard lock(registry.mutex());
    registry.seed_ = value;
    for (DeviceState* device : registry.opened_) seed(value, Device(device));
}

}  // namespace catena
