// A registered function: its descriptor, the selection of its kernels, its attributes.
#include "registry/registry.hpp"

#include <table_rules.hpp>

#include <cstring>

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

[[noreturn]] void refuse(const catena_function& f, std::string_view attribute,
                         std::string_view why) {
    raise<InvalidError>("[{}] attribute '{}': {}", f.name, attribute, why);
}

std::uint32_t find(const catena_function& f, std::string_view attribute) {
    for (std::uint32_t i = 0; i < f.n_attrs; ++i)
        if (f.attrs[i]->name == attribute) return i;
    std::vector<std::string_view> known;
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) known.push_back(f.attrs[i]->name);
    if (known.empty()) refuse(f, attribute, "it has none");
    refuse(f, attribute, fmt::format("expected one of {}", fmt::join(known, ", ")));
}

// The alternatives of AttributeValue are in the order of CATENA_ATTR_*.
static_assert(CATENA_ATTR_DTYPE == 7 && std::variant_size_v<AttributeValue> == 7);
catena_value to_abi(const AttributeValue& given) {
    catena_value out{};
    out.kind = static_cast<std::int32_t>(given.index()) + CATENA_ATTR_INT;
    const auto list = [&](const auto& values) {
        out.n = static_cast<std::uint32_t>(values.size());
        return values.data();
    };
    switch (out.kind) {
        case CATENA_ATTR_INT: out.v.i = std::get<std::int64_t>(given); break;
        case CATENA_ATTR_FLOAT: out.v.f = std::get<double>(given); break;
        case CATENA_ATTR_BOOL: out.v.i = std::get<bool>(given); break;
        case CATENA_ATTR_STRING: out.v.s = std::get<std::string>(given).c_str(); break;
        case CATENA_ATTR_INTS: out.v.ints = list(std::get<std::vector<std::int64_t>>(given)); break;
        case CATENA_ATTR_FLOATS: out.v.floats = list(std::get<std::vector<double>>(given)); break;
        default: out.v.dtype = catena::to_abi(std::get<Dtype>(given));
    }
    return out;
}

const catena_value& value_of(const catena_named_value& given) { return given.value; }
catena_value value_of(const Attribute& given) { return to_abi(given.value); }

}  // namespace

FunctionInfo::FunctionInfo(const catena_function& given) : descriptor(whole(given)) {
    const catena_function& d = descriptor;
    const std::vector<std::string> names = catena::type_vars(d);
    const auto index_of = [&](std::string_view name) {
        return static_cast<int>(std::ranges::find(names, name) - names.begin());
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
}

FunctionEntry::FunctionEntry(const catena_function& given, const PluginEntry& from)
    : FunctionInfo(given), plugin(from) {
    const catena_function& d = descriptor;
    const bool required = std::any_of(d.attrs, d.attrs + d.n_attrs, [](const auto* attribute) {
        return attribute->flags & CATENA_ATTR_REQUIRED;
    });
    defaults = required ? nullptr : BoundAttributes::make_defaults(d);
}

std::string FunctionInfo::input_name(std::size_t i) const {
    if (i < descriptor.n_inputs && !(variadic && i + 1 == descriptor.n_inputs))
        return descriptor.inputs[i]->name;
    return fmt::format("{}[{}]", descriptor.inputs[descriptor.n_inputs - 1]->name,
                       i + 1 - descriptor.n_inputs);
}

std::string describe_inputs(const FunctionInfo& f, std::span<ArrayBody* const> x) {
    std::string text;
    for (std::uint32_t i = 0; i < x.size(); ++i) {
        if (!x[i]) continue;
        text +=
            fmt::format("{}{} {} {}", text.empty() ? "" : ", ", f.input_name(i),
                        shape_to_string(x[i]->meta.shape, x[i]->meta.ndim), name(x[i]->meta.dtype));
    }
    return text.empty() ? "no inputs" : text;
}

FunctionEntry& FunctionEntry::gradient() {
    if (FunctionEntry* known = gradient_.load(std::memory_order_acquire)) return *known;
    FunctionEntry& found = Registry::get().require(descriptor.grad_function);
    check_grad_function(descriptor, found.descriptor,
                        Broken([](const std::string& text) { throw PluginError(text); }));
    gradient_.store(&found, std::memory_order_release);
    return found;
}

void FunctionEntry::forget_selections() {
    newest_.store(nullptr, std::memory_order_release);
    has_kernels = !kernels_.empty();
    pinned = !Registry::get().pin_of(descriptor.name).empty();
}

// Collects the kernels that fit key, best first, and keeps the selection.
const Selection& FunctionEntry::collect(std::uint64_t key, DeviceState& device) {
    const std::lock_guard lock(Registry::get().mutex());
    const bool deterministic = key >> 16 & 1;
    std::vector<KernelEntry> eligible;
    for (const KernelEntry& entry : kernels_) {
        const catena_kernel& k = *entry.table;
        if (device.backend.table->name != std::string_view(k.device)) continue;
        if (descriptor.version < k.version_min || descriptor.version > k.version_max) continue;
        if (deterministic && !(k.flags & CATENA_KERNEL_DETERMINISTIC)) continue;
        if (k.isa && *k.isa && !supports_isa(device, k.isa)) continue;
        const auto n = static_cast<std::uint32_t>(type_vars);
        bool fits = n == 0;
        for (std::uint32_t row = 0; row < k.n_types && !fits; ++row) {
            fits = true;
            for (std::uint32_t t = 0; t < n; ++t)
                fits = fits && dtype_index(k.types[row * n + t]) == int(key >> 4 * t & 15);
        }
        if (fits) eligible.push_back(entry);
    }
    const std::string_view pin = Registry::get().pin_of(descriptor.name);
    sort(eligible, pin);
    static auto* const all = new std::deque<Selection>;
    Selection* selection = &all->emplace_back(Selection{key, newest_.load(), {}, {}});
    for (const KernelEntry& entry : eligible) {
        const bool of_pin = !pin.empty() && entry.plugin->id == pin;
        if (of_pin) selection->pin = entry.plugin;
        if (entry.table->phase == CATENA_PHASE_BACKWARD) {
            if (entry.table->variant) continue;
            selection->backward.push_back(entry.table);
            selection->n_pinned += of_pin;
            continue;
        }
        const auto paired = std::ranges::find_if(eligible, [&](const KernelEntry& other) {
            return other.table->phase == CATENA_PHASE_BACKWARD && entry.table->variant &&
                   other.table->variant && other.plugin == entry.plugin &&
                   std::strcmp(other.table->variant, entry.table->variant) == 0;
        });
        selection->forward.push_back(
            {entry.table, paired == eligible.end() ? nullptr : paired->table});
    }
    newest_.store(selection, std::memory_order_release);
    return *selection;
}

// ---- attributes, checked against the schema

// Checks and stores a value. Copies lists and strings.
void BoundAttributes::set(const catena_function& f, std::uint32_t index, catena_value value) {
    const catena_attr_spec& spec = *f.attrs[index];
    fit_value(spec, value, Broken([&](const std::string& text) { refuse(f, spec.name, text); }));
    const auto own = [&]() -> Owned& { return *owned_.emplace_back(std::make_unique<Owned>()); };
    if (spec.kind == CATENA_ATTR_STRING) {
        value.v.s = own().text.assign(value.v.s).c_str();
    } else if (spec.kind == CATENA_ATTR_INTS) {
        auto& ints = own().ints;
        const std::int64_t* from = value.kind == CATENA_ATTR_INT ? &value.v.i : value.v.ints;
        ints.append(from, from + value.n);
        value.v.ints = ints.data();
    } else if (spec.kind == CATENA_ATTR_FLOATS) {
        auto& floats = own().floats;
        for (std::uint32_t i = 0; i < value.n; ++i) floats.push_back(number_of(value, i));
        value.v.floats = floats.data();
    }
    value.kind = spec.kind;
    values_[index] = value;
}

void BoundAttributes::finish(const catena_function& f, std::uint64_t seen) {
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        if (seen >> i & 1) continue;
        const catena_attr_spec& spec = *f.attrs[i];
        if (spec.flags & CATENA_ATTR_REQUIRED)
            refuse(f, spec.name, fmt::format("expected {}, got nothing", kind_text(spec.kind)));
        values_[i] = spec.def;
    }
}

const BoundAttributes* BoundAttributes::make_defaults(const catena_function& f) {
    auto* bound = new BoundAttributes(f);
    bound->immortal_ = true;
    bound->finish(f, 0);
    return bound;
}

template <class Given>
Ref<const BoundAttributes> BoundAttributes::make(const FunctionEntry& entry,
                                                 std::span<const Given> given) {
    if (given.empty() && entry.defaults) return Ref(entry.defaults);
    const catena_function& f = entry.descriptor;
    std::unique_ptr<BoundAttributes> bound(new BoundAttributes(f));
    std::uint64_t seen = 0;
    for (const Given& attribute : given) {
        const std::uint32_t index = find(f, attribute.name);
        if (seen >> index & 1) refuse(f, attribute.name, "expected once, got twice");
        seen |= std::uint64_t{1} << index;
        bound->set(f, index, value_of(attribute));
    }
    bound->finish(f, seen);
    return Ref<const BoundAttributes>::adopt(bound.release());
}

namespace {

struct RecentCall {
    const FunctionEntry* function = nullptr;
    SmallVector<std::uint32_t, 4> indices;  // of the given attributes in the schema
    Ref<const BoundAttributes> bound;
};
thread_local constinit PerThread<std::array<RecentCall, 32>> recent_calls;

bool is_equal(const catena_value& a, const catena_value& b) noexcept {
    if (a.kind != b.kind) return false;
    switch (a.kind) {
        case CATENA_ATTR_INT:
        case CATENA_ATTR_FLOAT:
        case CATENA_ATTR_BOOL: return a.v.raw == b.v.raw;
        case CATENA_ATTR_STRING: return a.v.s && std::strcmp(a.v.s, b.v.s) == 0;
        case CATENA_ATTR_INTS:
            return a.n == b.n && (a.n == 0 || a.v.ints) &&
                   std::equal(a.v.ints, a.v.ints + a.n, b.v.ints);
        case CATENA_ATTR_DTYPE: return same(a.v.dtype, b.v.dtype);
        default: return false;
    }
}

}  // namespace

Ref<const BoundAttributes> BoundAttributes::recent(const FunctionEntry& entry,
                                                   std::span<const catena_named_value> given) {
    if (given.empty() && entry.defaults) return Ref(entry.defaults);
    constexpr std::uint32_t longest = 16;  // of lists that are kept
    const auto is_long = [](const catena_named_value& a) { return a.value.n > longest; };
    if (given.empty() || std::ranges::any_of(given, is_long)) return make(entry, given);
    const catena_function& f = entry.descriptor;
    const catena_value& first = given[0].value;
    const std::uint64_t key = reinterpret_cast<std::uintptr_t>(&entry) +
                              (is_number(first.kind) ? first.v.raw : first.n) * 31;
    RecentCall& slot = recent_calls.get()[key * 0x9e3779b97f4a7c15u >> 59];
    bool fits = slot.function == &entry && slot.indices.size() == given.size();
    for (std::size_t i = 0; fits && i < given.size(); ++i) {
        const std::uint32_t index = slot.indices[i];
        fits = std::strcmp(f.attrs[index]->name, given[i].name) == 0 &&
               is_equal(given[i].value, slot.bound->values()[index]);
    }
    if (fits) return slot.bound;
    RecentCall made{&entry, {}, make(entry, given)};
    for (const catena_named_value& attribute : given)
        made.indices.push_back(find(f, attribute.name));
    slot = std::move(made);
    return slot.bound;
}

template Ref<const BoundAttributes> BoundAttributes::make(const FunctionEntry&,
                                                          std::span<const Attribute>);
template Ref<const BoundAttributes> BoundAttributes::make(const FunctionEntry&,
                                                          std::span<const catena_named_value>);

}  // namespace catena
