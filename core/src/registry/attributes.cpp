// Checks attributes against the schema.
#include "registry/attributes.hpp"

#include <table_rules.hpp>

#include <catena/core/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstring>

namespace catena {
namespace {

const char* kind_name(std::int32_t kind) {
    switch (kind) {
        case CATENA_ATTR_INT: return "an integer";
        case CATENA_ATTR_FLOAT: return "a number";
        case CATENA_ATTR_BOOL: return "a bool";
        case CATENA_ATTR_STRING: return "a string";
        case CATENA_ATTR_INTS: return "a list of integers";
        case CATENA_ATTR_FLOATS: return "a list of numbers";
        case CATENA_ATTR_DTYPE: return "a dtype";
        default: return "nothing known";
    }
}

std::string show(const catena_value& value) {
    switch (value.kind) {
        case CATENA_ATTR_INT: return std::to_string(value.v.i);
        case CATENA_ATTR_FLOAT: return fmt::format("{}", value.v.f);
        case CATENA_ATTR_BOOL: return value.v.i ? "true" : "false";
        case CATENA_ATTR_STRING: return fmt::format("'{}'", value.v.s);
        case CATENA_ATTR_INTS:
            return fmt::format("[{}]", fmt::join(value.v.ints, value.v.ints + value.n, ", "));
        case CATENA_ATTR_FLOATS:
            return fmt::format("[{}]", fmt::join(value.v.floats, value.v.floats + value.n, ", "));
        case CATENA_ATTR_DTYPE: return name(value.v.dtype);
        default: return "?";
    }
}

std::uint32_t find(const catena_function& f, std::string_view attribute) {
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        if (f.attrs[i]->name == attribute) return i;
    }
    std::vector<std::string_view> known;
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) known.push_back(f.attrs[i]->name);
    throw InvalidError(known.empty()
                           ? fmt::format("[{}] attribute '{}': it has none", f.name, attribute)
                           : fmt::format("[{}] attribute '{}': expected one of {}", f.name,
                                         attribute, fmt::join(known, ", ")));
}

catena_value to_abi(const AttributeValue& value) {
    catena_value out{};
    out.n = 1;
    struct Visitor {
        catena_value& out;
        void operator()(std::int64_t v) { out.kind = CATENA_ATTR_INT, out.v.i = v; }
        void operator()(double v) { out.kind = CATENA_ATTR_FLOAT, out.v.f = v; }
        void operator()(bool v) { out.kind = CATENA_ATTR_BOOL, out.v.i = v; }
        void operator()(const std::string& v) {
            out.kind = CATENA_ATTR_STRING, out.v.s = v.c_str();
        }
        void operator()(const std::vector<std::int64_t>& v) {
            out.kind = CATENA_ATTR_INTS, out.v.ints = v.data();
            out.n = static_cast<std::uint32_t>(v.size());
        }
        void operator()(const std::vector<double>& v) {
            out.kind = CATENA_ATTR_FLOATS, out.v.floats = v.data();
            out.n = static_cast<std::uint32_t>(v.size());
        }
        void operator()(Dtype v) { out.kind = CATENA_ATTR_DTYPE, out.v.dtype = catena::to_abi(v); }
    };
    std::visit(Visitor{out}, value);
    return out;
}

void check_range(const catena_function& f, const catena_attr_spec& spec,
                 const catena_value& value) {
    if (!(spec.flags & CATENA_ATTR_RANGED)) return;
    for (std::uint32_t i = 0; i < value.n; ++i) {
        const double x = number_of(value, i);
        if (x >= number_of(spec.lo) && x <= number_of(spec.hi)) continue;
        throw InvalidError(fmt::format("[{}] attribute '{}': expected {} to {}, got {}", f.name,
                                       spec.name, show(spec.lo), show(spec.hi), show(value)));
    }
}

void check_choice(const catena_function& f, const catena_attr_spec& spec,
                  const catena_value& value) {
    if (spec.kind != CATENA_ATTR_STRING || !spec.choices) return;
    std::vector<std::string_view> known;
    for (const char* const* choice = spec.choices; *choice; ++choice) {
        if (std::strcmp(*choice, value.v.s) == 0) return;
        known.push_back(*choice);
    }
    throw InvalidError(fmt::format("[{}] attribute '{}': expected one of {}, got {}", f.name,
                                   spec.name, fmt::join(known, ", "), show(value)));
}

}  // namespace

// Converts where nothing is lost: 2 to 2.0, 2.0 to 2, 2 to [2]; copies lists and strings.
void BoundAttributes::set(const catena_function& f, std::uint32_t index, catena_value value) {
    const catena_attr_spec& spec = *f.attrs[index];
    const bool whole = value.kind == CATENA_ATTR_FLOAT && std::trunc(value.v.f) == value.v.f &&
                       std::fabs(value.v.f) < 0x1p53;
    if (spec.kind == CATENA_ATTR_FLOAT && value.kind == CATENA_ATTR_INT) {
        value.v.f = static_cast<double>(value.v.i);
        value.kind = CATENA_ATTR_FLOAT;
    } else if (spec.kind == CATENA_ATTR_INT && whole) {
        value.v.i = static_cast<std::int64_t>(value.v.f);
        value.kind = CATENA_ATTR_INT;
    } else if (spec.kind == CATENA_ATTR_BOOL && value.kind == CATENA_ATTR_INT &&
               (value.v.i == 0 || value.v.i == 1)) {
        value.kind = CATENA_ATTR_BOOL;
    }
    if (spec.kind == CATENA_ATTR_FLOATS && value.kind == CATENA_ATTR_INT) {
        value.v.f = static_cast<double>(value.v.i);
        value.kind = CATENA_ATTR_FLOAT;
    }
    const bool one_to_list = (spec.kind == CATENA_ATTR_INTS && value.kind == CATENA_ATTR_INT) ||
                             (spec.kind == CATENA_ATTR_FLOATS && value.kind == CATENA_ATTR_FLOAT);
    const bool ints_to_floats = spec.kind == CATENA_ATTR_FLOATS && value.kind == CATENA_ATTR_INTS;
    if (value.kind != spec.kind && !one_to_list && !ints_to_floats) {
        throw InvalidError(fmt::format("[{}] attribute '{}': expected {}, got {}", f.name,
                                       spec.name, kind_name(spec.kind), show(value)));
    }
    if (spec.kind == CATENA_ATTR_INTS || spec.kind == CATENA_ATTR_FLOATS ||
        spec.kind == CATENA_ATTR_STRING) {
        auto& copy = *owned_.emplace_back(std::make_unique<Owned>());
        if (spec.kind == CATENA_ATTR_STRING) {
            copy.text = value.v.s;
            value.v.s = copy.text.c_str();
        } else if (spec.kind == CATENA_ATTR_INTS) {
            const std::int64_t* from = one_to_list ? &value.v.i : value.v.ints;
            copy.ints.assign(from, from + value.n);
            value.v.ints = copy.ints.data();
        } else {
            if (ints_to_floats) copy.floats.assign(value.v.ints, value.v.ints + value.n);
            else if (one_to_list) copy.floats = {value.v.f};
            else copy.floats.assign(value.v.floats, value.v.floats + value.n);
            value.v.floats = copy.floats.data();
        }
        value.kind = spec.kind;
    }
    check_range(f, spec, value);
    check_choice(f, spec, value);
    values_[index] = value;
}

void BoundAttributes::finish(const catena_function& f, std::uint64_t seen) {
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        if (seen >> i & 1) continue;
        if (f.attrs[i]->flags & CATENA_ATTR_REQUIRED) {
            throw InvalidError(fmt::format("[{}] attribute '{}': expected {}, got nothing", f.name,
                                           f.attrs[i]->name, kind_name(f.attrs[i]->kind)));
        }
        values_[i] = f.attrs[i]->def;
    }
}

const BoundAttributes* BoundAttributes::make_defaults(const catena_function& f) {
    auto* bound = new BoundAttributes;
    bound->immortal_ = true;
    bound->values_.resize(f.n_attrs);
    bound->finish(f, 0);
    return bound;
}

namespace {

const catena_value& value_of(const catena_named_value& given) { return given.value; }
catena_value value_of(const Attribute& given) { return to_abi(given.value); }

}  // namespace

template <class Given>
const BoundAttributes* BoundAttributes::bind(const catena_function& f,
                                             std::span<const Given> given) {
    std::unique_ptr<BoundAttributes> bound(new BoundAttributes);
    bound->values_.resize(f.n_attrs);
    std::uint64_t seen = 0;
    for (const Given& attribute : given) {
        const std::uint32_t index = find(f, attribute.name);
        if (seen >> index & 1) {
            throw InvalidError(fmt::format("[{}] attribute '{}': expected once, got twice", f.name,
                                           attribute.name));
        }
        seen |= std::uint64_t{1} << index;
        bound->set(f, index, value_of(attribute));
    }
    bound->finish(f, seen);
    return bound.release();
}

const BoundAttributes* BoundAttributes::make(const catena_function& f,
                                             std::span<const Attribute> given) {
    return bind(f, given);
}

const BoundAttributes* BoundAttributes::make(const catena_function& f,
                                             std::span<const catena_named_value> given) {
    return bind(f, given);
}

}  // namespace catena
