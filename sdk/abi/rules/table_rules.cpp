// Checks the table that a plugin hands over.
#include "table_rules.hpp"

#include <ids.hpp>
#include <limits.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <compare>
#include <cstring>
#include <map>
#include <set>
#include <span>

namespace catena {
namespace {

// what: a format and its arguments, which are put together only if the rule is broken.
template <class... Args>
void at_most(std::uint64_t most, std::uint64_t got, const Broken& broken,
             fmt::format_string<Args...> what, Args&&... args) {
    if (got <= most) return;
    broken("{}: expected at most {}, got {}", fmt::format(what, std::forward<Args>(args)...), most,
           got);
}

// Rows of dtypes that a kernel of the function may have.
std::uint32_t rows_of(const catena_function& f) {
    const std::size_t n = std::min<std::size_t>(type_vars(f).size(), CATENA_MAX_TYPE_VARS);
    return most_rows(static_cast<std::uint32_t>(n));
}

struct Walk {
    const catena_plugin& table;
    const TableChecks checks;
    const Broken& broken;

    template <class T>
    void size(const T& item, std::string_view what, std::uint32_t index) const {
        static_assert(size_1_0<T> <= sizeof(T));
        const std::uint32_t most = checks.known_headers ? sizeof(T) : largest_struct;
        if (item.struct_size < size_1_0<T>) {
            broken("{} {}: struct_size: expected at least {}, got {}", what, index, size_1_0<T>,
                   item.struct_size);
        }
        if (item.struct_size > most) {
            broken("{} {}: struct_size: expected at most {}{}, got {}", what, index, most,
                   checks.known_headers ? ", as in the ABI that its manifest names" : "",
                   item.struct_size);
        }
    }

    template <class T, class Body>
    void each(const T* const* list, std::uint32_t n, std::string_view what,
              const Body& body) const {
        at_most(most_entries, n, broken, "its table: n_{}s", what);
        if (n && !list) broken("its table has a list that is NULL but not empty");
        for (std::uint32_t i = 0; i < n; ++i) {
            if (!list[i]) broken("{} {} of its table is NULL", what, i);
            size(*list[i], what, i);
            body(*list[i]);
        }
    }

    void name(const char* text, std::string_view what) const {
        if (!text) broken("{} has no name", what);
    }
    template <class... Args>
    void complete(bool good, std::string_view what, fmt::format_string<Args...> where,
                  Args&&... args) const {
        if (!checks.complete || good) return;
        broken("{}: expected {}, got none", fmt::format(where, std::forward<Args>(args)...), what);
    }

    void ports(const catena_function& f, bool in) const {
        const std::uint32_t n = in ? f.n_inputs : f.n_outputs;
        const catena_port_spec* const* const list = in ? f.inputs : f.outputs;
        if (n > CATENA_MAX_PORTS)
            broken("function {}: more than {} ports", f.name, +CATENA_MAX_PORTS);
        if (n && !list) broken("function {}: ports are NULL", f.name);
        std::uint32_t index = 0;
        each(list, n, in ? "input" : "output", [&](const catena_port_spec& port) {
            name(port.name, fmt::format("port {} of {}", index++, f.name));
            if (!port.type_var) broken("function {}: port {} has no type_var", f.name, port.name);
            complete(port.doc, "a doc", "port {} of {}", port.name, f.name);
        });
    }

    void attribute(const catena_function& f, const catena_attr_spec& a) const {
        const auto fault = [&](const std::string& what) {
            broken("function {}: attribute {}: {}", f.name, a.name, what);
        };
        complete(a.doc, "a doc", "attribute {} of {}", a.name, f.name);
        if (a.kind < CATENA_ATTR_INT || a.kind > CATENA_ATTR_DTYPE)
            fault(fmt::format("unknown kind {}", a.kind));
        for (std::uint32_t i = 0; a.choices && a.choices[i]; ++i) {
            if (i == most_choices)
                fault(fmt::format("over {} choices; is the list NULL-terminated?", most_choices));
        }
        if (a.flags & CATENA_ATTR_REQUIRED) return;
        if (a.def.kind != a.kind)
            fault(fmt::format("default of kind {}, expected {}", a.def.kind, a.kind));
        if (is_list(a.kind) && a.def.n > longest_list) {
            fault(fmt::format("its default: expected at most {} values, got {}", longest_list,
                              a.def.n));
        }
        if ((a.kind == CATENA_ATTR_STRING || (is_list(a.kind) && a.def.n)) && !a.def.v.s)
            fault("its default is NULL");
    }

    void function(const catena_function& f) const {
        name(f.name, "a function");
        complete(f.doc, "a doc", "function {}", f.name);
        if (!f.infer && !f.compose) broken("function {} has neither infer() nor compose()", f.name);
        ports(f, true);
        ports(f, false);
        if (f.n_attrs > CATENA_MAX_ATTRS) broken("function {}: too many attributes", f.name);
        if (f.n_attrs && !f.attrs) broken("function {}: attributes are NULL", f.name);
        std::uint32_t index = 0;
        each(f.attrs, f.n_attrs, "attribute", [&](const catena_attr_spec& a) {
            name(a.name, fmt::format("attribute {} of {}", index++, f.name));
            attribute(f, a);
        });
    }

    // The most that there can be for a function of another plugin.
    std::uint32_t rows(const catena_kernel& k) const {
        for (const catena_function* f : std::span(table.functions, table.n_functions)) {
            if (std::strcmp(f->name, k.function) == 0) return rows_of(*f);
        }
        return most_rows(CATENA_MAX_TYPE_VARS);
    }

    void kernel(const catena_kernel& k) const {
        name(k.function, "a kernel's function");
        name(k.device, "a kernel's device");
        complete(k.isa, "an isa", "kernel of {}", k.function);
        if (k.phase != CATENA_PHASE_FORWARD && k.phase != CATENA_PHASE_BACKWARD)
            broken("kernel of {}: unknown phase {}", k.function, k.phase);
        if (!k.run) broken("kernel of {} has no run()", k.function);
        if (k.n_types && !k.types) broken("kernel of {}: types are NULL", k.function);
        at_most(rows(k), k.n_types, broken, "kernel of {}: n_types", k.function);
        at_most(most_saved, k.n_saved, broken, "kernel of {}: n_saved", k.function);
        if (k.n_saved && k.variant && k.phase == CATENA_PHASE_FORWARD && !k.plan)
            broken("kernel of {} saves tensors but has no plan()", k.function);
    }

    void backend(const catena_backend& b) const {
        name(b.name, "a backend");
        if (!b.count || !b.open || !b.close || !b.supports_isa || !b.alloc || !b.free || !b.copy ||
            !b.sync) {
            broken(
                "backend {} lacks one of count, open, close, supports_isa, alloc, free, copy, sync",
                b.name);
        }
        if ((b.flags & CATENA_BACKEND_ASYNC) &&
            (!b.stream_create || !b.stream_destroy || !b.stream_sync || !b.event_create ||
             !b.event_destroy || !b.event_record || !b.event_wait)) {
            broken(
                "backend {} is asynchronous and lacks one of stream_create, stream_destroy, "
                "stream_sync, event_create, event_destroy, event_record, event_wait",
                b.name);
        }
        const std::int32_t type = b.dlpack_type;
        const std::int32_t last = checks.complete ? listed_device_types : last_device_type;
        if (type < 1 || type > last || (checks.complete && (type == 5 || type == 6))) {
            broken("backend {}: dlpack_type: expected a DLDeviceType, 1 to {}, got {}", b.name,
                   last, type);
        }
        constexpr std::uint32_t flags = CATENA_BACKEND_HOST_MEMORY | CATENA_BACKEND_ASYNC;
        if (checks.complete && (b.flags & ~flags))
            broken("backend {}: flags: expected those of the ABI, got {:#x}", b.name, b.flags);
    }

    void extension(const catena_extension& e) const {
        name(e.id, "an extension");
        name(e.device, "an extension's device");
        if (!e.table) broken("extension {} has no table", e.id);
    }
};

// False if it has none.
bool check_length(const char* name, std::string_view what, const Broken& broken) {
    if (!name || !*name) return broken("{} has no name", what), false;
    if (strnlen(name, 201) > 200) broken("{} has a name of over 200 bytes", what);
    return true;
}

// Bits of ports that are not there; RETAIN_REST is of a variadic port.
bool retains_beyond(std::uint64_t set, std::uint32_t n, bool variadic) {
    if (variadic) set &= ~CATENA_RETAIN_REST;
    return n < 64 && set >> n;
}

void check_range(const catena_attr_spec& a, const std::string& where, const Broken& broken) {
    if (!(a.flags & CATENA_ATTR_RANGED)) return;
    if (!is_number(a.kind) && !is_list(a.kind))
        return broken("{}: a range, but its kind is {}", where, a.kind);
    if (!is_number(a.lo.kind) || !is_number(a.hi.kind)) {
        return broken("{}: a range of kinds {} and {}, expected numbers", where, a.lo.kind,
                      a.hi.kind);
    }
    const double lo = number_of(a.lo), hi = number_of(a.hi);
    if (!(lo <= hi)) return broken("{}: a range from {} to {}", where, lo, hi);
    if (a.flags & CATENA_ATTR_REQUIRED) return;
    for (std::uint32_t i = 0; i < (is_list(a.kind) ? a.def.n : 1); ++i) {
        const double def = number_of(a.def, i);
        if (!(def >= lo && def <= hi))
            broken("{}: its default {} is out of its range {} to {}", where, def, lo, hi);
    }
}

void check_choices(const catena_attr_spec& a, const std::string& where, const Broken& broken) {
    if (!a.choices) return;
    if (a.kind != CATENA_ATTR_STRING)
        return broken("{}: choices, but its kind is {}", where, a.kind);
    bool found = a.flags & CATENA_ATTR_REQUIRED;
    for (std::uint32_t i = 0; a.choices[i]; ++i)
        found = found || std::strcmp(a.choices[i], a.def.v.s) == 0;
    if (!found) broken("{}: its default '{}' is not among its choices", where, a.def.v.s);
}

constexpr std::uint32_t most_examples = 64;
constexpr std::size_t longest_example = 1000;

// Takes the first word off a text; in quotes blanks are part of it, and quotes after a backslash.
std::string_view take_word(std::string_view& text) {
    std::size_t end = 0;
    for (bool quoted = false; end < text.size() && (quoted || text[end] != ' '); ++end) {
        if (text[end] == '"') quoted = !quoted;
        else if (quoted && text[end] == '\\') ++end;
    }
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(word.size());
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    return word;
}

// Words NAME=VALUE, with names of ports and attributes; required ones are present.
void check_example(const catena_function& f, const char* example, const Broken& broken) {
    const std::string_view text(example, strnlen(example, longest_example + 1));
    if (text.size() > longest_example)
        return broken("function {}: an example of over {} bytes", f.name, longest_example);
    if (std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
        return broken("function {}: an example contains control characters", f.name);
    std::set<std::string_view> given, known;
    std::string_view rest = text.substr(std::min(text.find_first_not_of(' '), text.size()));
    while (!rest.empty()) {
        const std::string_view word = take_word(rest);
        const std::size_t equals = word.find('=');
        if (equals == word.npos || equals + 1 == word.size()) {
            return broken("function {}: example '{}': expected NAME=VALUE, got '{}'", f.name, text,
                          word);
        }
        given.insert(word.substr(0, equals));
    }
    const auto meet = [&](std::string_view name, bool required) {
        known.insert(name);
        if (required && !given.contains(name))
            broken("function {}: example '{}': {} is missing", f.name, text, name);
    };
    for (std::uint32_t i = 0; i < f.n_inputs; ++i)
        meet(f.inputs[i]->name, !(f.inputs[i]->flags & CATENA_PORT_OPTIONAL));
    for (std::uint32_t i = 0; i < f.n_attrs; ++i)
        meet(f.attrs[i]->name, f.attrs[i]->flags & CATENA_ATTR_REQUIRED);
    for (const std::string_view name : given) {
        if (!known.contains(name))
            broken("function {}: example '{}': it has no {}", f.name, text, name);
    }
}

std::string text_of(catena_dtype dtype) {
    constexpr const char* codes[] = {"int", "uint", "float", "?", "bfloat", "?", "bool"};
    const std::string code = dtype.code < std::size(codes) ? codes[dtype.code] : "?";
    return dtype.code == CATENA_CODE_BOOL ? code : code + std::to_string(dtype.bits);
}

std::string text_of(const catena_value& value) {
    switch (value.kind) {
        case CATENA_ATTR_INT: return std::to_string(value.v.i);
        case CATENA_ATTR_FLOAT: return fmt::format("{}", value.v.f);
        case CATENA_ATTR_BOOL: return value.v.i ? "true" : "false";
        case CATENA_ATTR_STRING: return fmt::format("'{}'", value.v.s);
        case CATENA_ATTR_INTS: return fmt::format("{}", std::span(value.v.ints, value.n));
        case CATENA_ATTR_FLOATS: return fmt::format("{}", std::span(value.v.floats, value.n));
        case CATENA_ATTR_DTYPE: return text_of(value.v.dtype);
        default: return "?";
    }
}

// False if the value cannot be of that kind.
bool convert(catena_value& value, std::int32_t kind) {
    if (!is_list(value.kind)) value.n = 1;
    const bool whole = value.kind == CATENA_ATTR_FLOAT && std::trunc(value.v.f) == value.v.f &&
                       std::fabs(value.v.f) < 0x1p53;
    if (value.kind == CATENA_ATTR_INT &&
        (kind == CATENA_ATTR_FLOAT || kind == CATENA_ATTR_FLOATS)) {
        value.v.f = static_cast<double>(value.v.i);
        value.kind = CATENA_ATTR_FLOAT;
    } else if (kind == CATENA_ATTR_INT && whole) {
        value.v.i = static_cast<std::int64_t>(value.v.f);
        value.kind = CATENA_ATTR_INT;
    } else if (kind == CATENA_ATTR_BOOL && value.kind == CATENA_ATTR_INT &&
               (value.v.i == 0 || value.v.i == 1)) {
        value.kind = CATENA_ATTR_BOOL;
    }
    return value.kind == kind || (kind == CATENA_ATTR_INTS && value.kind == CATENA_ATTR_INT) ||
           (kind == CATENA_ATTR_FLOATS &&
            (value.kind == CATENA_ATTR_FLOAT || value.kind == CATENA_ATTR_INTS));
}

}  // namespace

void check_table(const catena_plugin& t, TableChecks checks, const Broken& broken) {
    const Walk walk{t, checks, broken};
    walk.size(t, "plugin table", 0);
    const auto check = [&](auto part) { return [&, part](const auto& x) { (walk.*part)(x); }; };
    walk.each(t.functions, t.n_functions, "function", check(&Walk::function));
    walk.each(t.kernels, t.n_kernels, "kernel", check(&Walk::kernel));
    walk.each(t.backends, t.n_backends, "backend", check(&Walk::backend));
    walk.each(t.extensions, t.n_extensions, "extension", check(&Walk::extension));
}

void check_rules(const catena_plugin& t, const KnownFunction& known, const Broken& broken) {
    std::map<std::string_view, const catena_function*> own;
    for (const catena_function* f : std::span(t.functions, t.n_functions)) {
        check_id(f->name, "a function", broken);
        check_version(*f, broken);
        for (const bool in : {true, false}) {
            for (std::uint32_t i = 0; i < (in ? f->n_inputs : f->n_outputs); ++i)
                check_name((in ? f->inputs : f->outputs)[i]->name,
                           fmt::format("port {} of {}", i, f->name), broken);
        }
        for (std::uint32_t i = 0; i < f->n_attrs; ++i)
            check_name(f->attrs[i]->name, fmt::format("attribute {} of {}", i, f->name), broken);
        check_ports(*f, broken);
        check_gradient(*f, broken);
        check_attributes(*f, broken);
        check_examples(*f, broken);
        if (!own.emplace(f->name, f).second) broken("function {} is declared twice", f->name);
    }
    const auto find = [&](std::string_view name) {
        const auto found = own.find(name);
        return found == own.end() ? known(name) : found->second;
    };
    for (const auto& [name, f] : own) {
        const catena_function* const g = f->grad_function ? find(f->grad_function) : nullptr;
        if (g) check_grad_function(*f, *g, broken);
    }
    for (const catena_kernel* k : std::span(t.kernels, t.n_kernels)) {
        check_id(k->function, "a kernel's function", broken);
        check_name(k->device, "a kernel's device", broken);
        check_versions(*k, broken);
        if (const catena_function* f = find(k->function)) check_kernel_of(*f, *k, broken);
    }
    check_variants(t, broken);
    std::set<std::string_view> backends;
    for (const catena_backend* b : std::span(t.backends, t.n_backends)) {
        check_name(b->name, "a backend", broken);
        if (!backends.insert(b->name).second) broken("backend {} is declared twice", b->name);
    }
    for (const catena_extension* e : std::span(t.extensions, t.n_extensions)) {
        check_name(e->id, "an extension", broken);
        if (*e->device) check_name(e->device, "an extension's device", broken);
    }
}

void check_id(const char* name, std::string_view what, const Broken& broken) {
    if (check_length(name, what, broken) && !is_id(name))
        broken("{} '{}': expected {}", what, name, id_rule);
}

void check_name(const char* name, std::string_view what, const Broken& broken) {
    if (!check_length(name, what, broken)) return;
    if (!std::ranges::all_of(std::string_view(name), [](unsigned char c) {
            return std::isalnum(c) || std::strchr("._-:/", c);
        })) {
        broken("{} '{}': names are letters, digits and . _ - : /", what, name);
    }
}

void check_version(const catena_function& f, const Broken& broken) {
    if (f.version < 1) broken("function {}: version: expected at least 1, got 0", f.name);
    at_most(newest_version, f.version, broken, "function {}: version", f.name);
}

void check_versions(const catena_kernel& k, const Broken& broken) {
    if (k.version_min > k.version_max)
        broken("kernel of {}: versions {} to {}", k.function, k.version_min, k.version_max);
}

void check_ports(const catena_function& f, const Broken& broken) {
    const auto variadic = [&](const catena_port_spec& port) {
        if (!(port.flags & CATENA_PORT_VARIADIC)) return;
        broken("function {}: only the last input can be variadic, not {}", f.name, port.name);
    };
    for (std::uint32_t i = 0; i + 1 < f.n_inputs; ++i) variadic(*f.inputs[i]);
    for (std::uint32_t i = 0; i < f.n_outputs; ++i) variadic(*f.outputs[i]);
    if (retains_beyond(f.retain_x, f.n_inputs, is_variadic(f)))
        broken("function {}: retain_x {:#x}: it has {} inputs", f.name, f.retain_x, f.n_inputs);
    if (retains_beyond(f.retain_y, f.n_outputs, false))
        broken("function {}: retain_y {:#x}: it has {} outputs", f.name, f.retain_y, f.n_outputs);
    if (type_vars(f).size() > CATENA_MAX_TYPE_VARS)
        broken("function {}: more than {} type variables", f.name, +CATENA_MAX_TYPE_VARS);
    if ((f.flags & CATENA_FUNCTION_ADDITION) && (f.n_inputs != 2 || f.n_outputs != 1)) {
        broken(
            "function {}: flags: it claims to be the addition: expected 2 inputs and 1 output, got "
            "{} and {}",
            f.name, f.n_inputs, f.n_outputs);
    }
    bool mutates = false, host = false;
    for (const catena_port_spec* port : std::span(f.inputs, f.n_inputs)) {
        mutates = mutates || port->flags & CATENA_PORT_MUTATED;
        if (!(port->flags & CATENA_PORT_HOST)) continue;
        host = true;
        if (!(port->flags & CATENA_PORT_NON_DIFFERENTIABLE)) {
            broken("function {}: input {}: HOST: expected NON_DIFFERENTIABLE as well, got none",
                   f.name, port->name);
        }
    }
    if (!f.compose && (host || f.flags & CATENA_FUNCTION_RECOMPUTED)) {
        broken("function {}: {}: expected compose(), got none", f.name,
               host ? "an input is HOST" : "flags: RECOMPUTED");
    }
    if (f.compose && (mutates || f.flags & CATENA_FUNCTION_VIEW)) {
        broken("function {}: compose(): expected {}, got one", f.name,
               mutates ? "no MUTATED input" : "no VIEW");
    }
    if (f.flags & CATENA_FUNCTION_RECOMPUTED && (f.gradient || f.grad_function))
        broken("function {}: flags: RECOMPUTED: expected no gradient of its own, got one", f.name);
    if (!(f.flags & CATENA_FUNCTION_VIEW)) return;
    if (f.n_outputs != 1 || !f.n_inputs ||
        (f.inputs[0]->flags & (CATENA_PORT_OPTIONAL | CATENA_PORT_MUTATED))) {
        return broken(
            "function {}: a view needs one output and a first input that is neither optional nor "
            "mutated",
            f.name);
    }
    if (std::strcmp(f.inputs[0]->type_var, f.outputs[0]->type_var) != 0) {
        broken("function {}: a view needs the same type_var for input and output, got {} and {}",
               f.name, f.inputs[0]->type_var, f.outputs[0]->type_var);
    }
}

void check_attributes(const catena_function& f, const Broken& broken) {
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        const catena_attr_spec& a = *f.attrs[i];
        const std::string where = fmt::format("function {}: attribute {}", f.name, a.name);
        if (std::any_of(f.attrs, f.attrs + i,
                        [&](const auto* b) { return std::strcmp(a.name, b->name) == 0; }))
            broken("{} is declared twice", where);
        if (a.kind == CATENA_ATTR_BOOL && !(a.flags & CATENA_ATTR_REQUIRED) && a.def.v.i != 0 &&
            a.def.v.i != 1)
            broken("{}: its default: expected 0 or 1, got {}", where, a.def.v.i);
        check_range(a, where, broken);
        check_choices(a, where, broken);
    }
}

void check_examples(const catena_function& f, const Broken& broken) {
    if (!f.examples) return;
    for (std::uint32_t i = 0; f.examples[i]; ++i) {
        if (i == most_examples) {
            return broken("function {}: over {} examples; is the list NULL-terminated?", f.name,
                          most_examples);
        }
        check_example(f, f.examples[i], broken);
    }
}

void check_gradient(const catena_function& f, const Broken& broken) {
    if (f.gradient && f.grad_function)
        broken("function {} has both gradient() and grad_function", f.name);
    if (f.grad_function)
        check_id(f.grad_function, fmt::format("the grad_function of {}", f.name), broken);
}

void check_grad_function(const catena_function& f, const catena_function& g, const Broken& broken) {
    const auto same = [](const catena_attr_spec* a, const catena_attr_spec* b) {
        return a->kind == b->kind && std::strcmp(a->name, b->name) == 0;
    };
    if (!std::equal(f.attrs, f.attrs + f.n_attrs, g.attrs, g.attrs + g.n_attrs, same))
        broken("function {}: its grad_function {} has other attributes", f.name, f.grad_function);
    if (is_variadic(f) || is_variadic(g)) return;
    const auto inputs =
        static_cast<std::uint32_t>(std::popcount(f.retain_x) + std::popcount(f.retain_y)) +
        f.n_outputs;
    const auto outputs = std::count_if(f.inputs, f.inputs + f.n_inputs, [](const auto* port) {
        return !(port->flags & CATENA_PORT_NON_DIFFERENTIABLE);
    });
    if (g.n_inputs != inputs || g.n_outputs != outputs) {
        broken(
            "function {}: its grad_function {}: expected {} inputs and {} outputs, got {} and {}",
            f.name, f.grad_function, inputs, outputs, g.n_inputs, g.n_outputs);
    }
}

void check_kernel_of(const catena_function& f, const catena_kernel& k, const Broken& broken) {
    if (f.flags & CATENA_FUNCTION_VIEW) broken("kernel of {}: a view has no kernels", k.function);
    if (retains_beyond(k.retain_x, f.n_inputs, is_variadic(f)) ||
        retains_beyond(k.retain_y, f.n_outputs, false)) {
        broken("kernel of {} retains ports that are not there: x {:#x}, y {:#x}", k.function,
               k.retain_x, k.retain_y);
    }
    at_most(rows_of(f), k.n_types, broken, "kernel of {}: n_types", k.function);
}

void check_variants(const catena_plugin& table, const Broken& broken) {
    struct Variant {
        std::string_view function, device, variant;
        auto operator<=>(const Variant&) const = default;
    };
    std::map<Variant, std::uint32_t> saved;
    for (std::uint32_t i = 0; i < table.n_kernels; ++i) {
        const catena_kernel& k = *table.kernels[i];
        if (k.n_saved && !k.variant)
            broken("kernel of {} saves tensors but names no variant", k.function);
        if (!k.variant) continue;
        const auto [other, first] = saved.try_emplace({k.function, k.device, k.variant}, k.n_saved);
        if (other->second == k.n_saved) continue;
        broken("kernel of {}: n_saved: expected {} as in the other kernels of variant '{}', got {}",
               k.function, other->second, k.variant, k.n_saved);
    }
}

std::vector<std::string> type_vars(const catena_function& f) {
    std::vector<std::string> names;
    for (const auto ports : {std::span(f.inputs, f.n_inputs), std::span(f.outputs, f.n_outputs)})
        for (const auto* port : ports)
            if (std::ranges::count(names, port->type_var) == 0) names.emplace_back(port->type_var);
    return names;
}

void fit_value(const catena_attr_spec& a, catena_value& value, const Broken& broken) {
    if (!convert(value, a.kind)) broken("expected {}, got {}", kind_text(a.kind), text_of(value));
    const std::string why = why_refused(a, value, [](const catena_value& v) { return text_of(v); });
    if (!why.empty()) broken("{}", why);
}

}  // namespace catena
