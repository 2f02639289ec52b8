// Devices of the registered backends, by name.
#include "registry/registry.hpp"

#include <limits.hpp>

#include <algorithm>
#include <charconv>
#include <ranges>

namespace catena {
namespace {

// The number of its devices; reason: why there is none.
int count(const BackendEntry& backend, std::string* reason = nullptr) {
    catena_ctx ctx;
    std::int32_t n = 0;
    const PluginStep step(backend.plugin->file, "count()");
    const catena_status status = backend.table->count(&ctx, &n);
    if (status == CATENA_OK && n > 0 && n <= most_devices) return n;
    if (!reason) return 0;
    if (!ctx.error.empty()) *reason = one_line(ctx.error);
    else if (status) *reason = fmt::format("status {}", status);
    else if (n > 0) *reason = fmt::format("expected at most {} devices, got {}", most_devices, n);
    else *reason = "it found none";
    return 0;
}

}  // namespace

std::vector<BackendInfo> Registry::backends() {
    const std::lock_guard lock(mutex_);
    std::vector<BackendInfo> all;
    for (const auto& backend : backends_) {
        const catena_backend& table = *backend->table;
        BackendInfo& info = all.emplace_back();
        info.name = table.name;
        info.doc = table.doc ? table.doc : "";
        info.plugin = backend->plugin->id;
        info.devices = count(*backend, &info.reason);
        info.host_memory = table.flags & CATENA_BACKEND_HOST_MEMORY;
        info.async = table.flags & CATENA_BACKEND_ASYNC;
    }
    return all;
}

std::optional<std::string> Registry::no_device(std::string_view names) {
    const std::lock_guard lock(mutex_);
    std::string text;
    for (const auto part : std::views::split(names, ',')) {
        const std::string_view name(part.begin(), part.end());
        if (name.empty()) continue;
        const auto backend =
            std::ranges::find_if(backends_, [&](const auto& b) { return b->table->name == name; });
        if (backend == backends_.end() || count(**backend) > 0) return std::nullopt;
        text += fmt::format("{}{} has no device", text.empty() ? "" : ", ", name);
    }
    if (text.empty()) return std::nullopt;
    return text;
}

DeviceState& Registry::open(BackendEntry& backend, int ordinal) {
    const auto slot = static_cast<std::size_t>(ordinal);
    if (backend.devices.size() <= slot) backend.devices.resize(slot + 1);
    if (!backend.devices[slot]) {
        const std::uint64_t seed = seed_ ? *seed_ : initial_seed();
        auto state =
            std::make_unique<DeviceState>(backend, ordinal, static_cast<int>(opened_.size()));
        state->random_seed = seed_of(seed, ordinal);
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
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
        if (error != std::errc() || end != digits.data() + digits.size() || ordinal < 0)
            raise<DeviceError>("[device] name: expected NAME:ORDINAL, got '{}'", name);
    }
    for (const auto& backend : registry.backends_) {
        if (backend->table->name != kind) continue;
        std::string reason;
        const int n = count(*backend, &reason);
        if (ordinal < n) return Device(&registry.open(*backend, ordinal));
        if (n == 0) {
            raise<DeviceError>("[device] {}: expected a device, got none: {}", backend->table->name,
                               reason);
        }
        raise<DeviceError>("[device] {}: expected an ordinal below {}, got {}", kind, n, ordinal);
    }
    if (!registry.backends_.empty()) diagnostics().no_device(name, kind);
    throw DeviceError(with_plugin_report(
        fmt::format("[device] {}: expected a plugin with backends, got none", name)));
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
            if (has != host_memory || count(*backend) < 1) continue;
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
    for (const BackendInfo& backend : backends()) {
        for (int i = 0; i < backend.devices; ++i)
            names.push_back(fmt::format("{}:{}", backend.name, i));
    }
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
