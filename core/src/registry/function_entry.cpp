// One registered function: what its descriptor says, and the choice of its kernels.
#include "registry/registry.hpp"

#include <fmt/format.h>

#include <table_rules.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>

namespace catena {
namespace {

catena_function whole(const catena_function& given) {
    catena_function f{};
    std::memcpy(&f, &given, std::min<std::size_t>(given.struct_size, sizeof(f)));
    f.struct_size = sizeof(f);
    return f;
}

bool supports_isa(const DeviceState& device, const char* isa) {
    const PluginStep step(device.backend.plugin->file, "supports_isa()");
    return device.table.supports_isa(device.dev, isa) != 0;
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
    for (std::uint32_t i = 0; i < d.n_outputs; ++i)
        output_type.push_back(index_of(d.outputs[i]->type_var));
    variadic = is_variadic(d);
    type_vars = static_cast<int>(names.size());
    const bool required = std::any_of(d.attrs, d.attrs + d.n_attrs, [](const auto* attribute) {
        return attribute->flags & CATENA_ATTR_REQUIRED;
    });
    defaults = required ? nullptr : BoundAttributes::make_defaults(d);
}

std::string FunctionEntry::input_name(std::uint32_t i) const {
    if (i < descriptor.n_inputs && !(variadic && i + 1 == descriptor.n_inputs))
        return descriptor.inputs[i]->name;
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

// Collects what fits key, best first.
const Selection& FunctionEntry::collect(std::uint64_t key, DeviceState& device) {
    const std::lock_guard lock(Registry::get().mutex());
    auto& slot = cache_[key * 0x9e3779b97f4a7c15u >> 60];  // once the cache is full
    for (const Selection* made : selections_) {
        if (made->key != key) continue;
        slot.store(made, std::memory_order_release);
        return *made;
    }
    const bool deterministic = key >> 16 & 1;
    std::vector<KernelEntry> eligible;
    for (const KernelEntry& entry : kernels_) {
        const catena_kernel& k = *entry.kernel;
        if (device.backend.table->name != std::string_view(k.device)) continue;
        if (descriptor.version < k.version_min || descriptor.version > k.version_max) continue;
        if (deterministic && !(k.flags & CATENA_KERNEL_DETERMINISTIC)) continue;
        if (k.isa && *k.isa && !supports_isa(device, k.isa)) continue;
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
    std::ranges::stable_sort(eligible, [&](const KernelEntry& a, const KernelEntry& b) {
        return comes_before(pin_, *a.plugin, a.kernel->priority, *b.plugin, b.kernel->priority);
    });
    static auto* const all = new std::deque<Selection>;
    Selection* selection = &all->emplace_back();
    selection->key = key;
    for (const KernelEntry& entry : eligible) {
        const bool of_pin = !pin_.empty() && entry.plugin->id == pin_;
        if (of_pin) selection->pin = entry.plugin;
        if (entry.kernel->phase == CATENA_PHASE_BACKWARD) {
            if (entry.kernel->variant) continue;
            selection->backward.push_back(entry.kernel);
            selection->n_pinned += of_pin;
            continue;
        }
        const auto paired = std::ranges::find_if(eligible, [&](const KernelEntry& other) {
            return other.kernel->phase == CATENA_PHASE_BACKWARD && entry.kernel->variant &&
                   other.kernel->variant && other.plugin == entry.plugin &&
                   std::strcmp(other.kernel->variant, entry.kernel->variant) == 0;
        });
        selection->forward.push_back(
            {entry.kernel, paired == eligible.end() ? nullptr : paired->kernel});
    }
    selections_.push_back(selection);
    const auto free = std::ranges::find_if(cache_, [](const auto& s) { return !s.load(); });
    (free == std::end(cache_) ? slot : *free).store(selection, std::memory_order_release);
    return *selection;
}

}  // namespace catena
