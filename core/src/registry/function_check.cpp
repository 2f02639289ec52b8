// Checks what a plugin says of a function.
#include "registry/registry.hpp"
#include "registry/registry_check.hpp"

#include <ids.hpp>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstring>
#include <set>

namespace catena {

namespace {

void check_length(const char* name, const char* what) {
    if (!name || !*name) refuse("{} has no name", what);
    if (strnlen(name, 201) > 200) refuse("{} has a name of over 200 bytes", what);
}

}  // namespace

void check_id(const char* name, const char* what) {
    check_length(name, what);
    if (!is_id(name)) refuse("{} '{}': expected {}", what, name, id_rule);
}

void check_name(const char* name, const char* what) {
    check_length(name, what);
    for (const char* c = name; *c; ++c) {
        if (!(std::isalnum(static_cast<unsigned char>(*c)) || std::strchr("._-:/", *c))) {
            refuse("{} '{}': names are letters, digits and . _ - : /", what, name);
        }
    }
}

double number(const catena_value& value, std::uint32_t i) {
    switch (value.kind) {
        case CATENA_ATTR_FLOAT: return value.v.f;
        case CATENA_ATTR_INTS: return static_cast<double>(value.v.ints[i]);
        case CATENA_ATTR_FLOATS: return value.v.floats[i];
        default: return static_cast<double>(value.v.i);
    }
}

namespace {

void check_ports(const catena_function& f, const catena_port_spec* const* ports, std::uint32_t n,
                 bool inputs) {
    if (n > CATENA_MAX_PORTS) refuse("function {}: more than {} ports", f.name, +CATENA_MAX_PORTS);
    if (n && !ports) refuse("function {}: ports are NULL", f.name);
    for (std::uint32_t i = 0; i < n; ++i) {
        check_struct(ports[i], inputs ? "input" : "output", i);
        check_name(ports[i]->name, fmt::format("port {} of {}", i, f.name).c_str());
        if (!ports[i]->type_var)
            refuse("function {}: port {} has no type_var", f.name, ports[i]->name);
        if ((ports[i]->flags & CATENA_PORT_VARIADIC) && (!inputs || i + 1 != n)) {
            refuse("function {}: only the last input can be variadic, not {}", f.name,
                   ports[i]->name);
        }
    }
}

bool is_number(std::int32_t kind) { return kind == CATENA_ATTR_INT || kind == CATENA_ATTR_FLOAT; }
bool is_list(std::int32_t kind) { return kind == CATENA_ATTR_INTS || kind == CATENA_ATTR_FLOATS; }

void check_range(const catena_function& f, const catena_attr_spec& attr) {
    if (!(attr.flags & CATENA_ATTR_RANGED)) return;
    if (!is_number(attr.kind) && !is_list(attr.kind)) {
        refuse("function {}: attribute {}: a range, but its kind is {}", f.name, attr.name,
               attr.kind);
    }
    if (!is_number(attr.lo.kind) || !is_number(attr.hi.kind)) {
        refuse("function {}: attribute {}: a range of kinds {} and {}, expected numbers", f.name,
               attr.name, attr.lo.kind, attr.hi.kind);
    }
    if (!(number(attr.lo) <= number(attr.hi))) {
        refuse("function {}: attribute {}: a range from {} to {}", f.name, attr.name,
               number(attr.lo), number(attr.hi));
    }
    if (attr.flags & CATENA_ATTR_REQUIRED) return;
    for (std::uint32_t i = 0; i < (is_list(attr.kind) ? attr.def.n : 1); ++i) {
        const double def = number(attr.def, i);
        if (def >= number(attr.lo) && def <= number(attr.hi)) continue;
        refuse("function {}: attribute {}: its default {} is out of its range {} to {}", f.name,
               attr.name, def, number(attr.lo), number(attr.hi));
    }
}

void check_choices(const catena_function& f, const catena_attr_spec& attr) {
    if (!attr.choices) return;
    if (attr.kind != CATENA_ATTR_STRING) {
        refuse("function {}: attribute {}: choices, but its kind is {}", f.name, attr.name,
               attr.kind);
    }
    bool found = attr.flags & CATENA_ATTR_REQUIRED;
    for (std::uint32_t i = 0; attr.choices[i]; ++i) {
        if (i == most_choices) {
            refuse("function {}: attribute {}: over {} choices; is the list's end NULL?", f.name,
                   attr.name, most_choices);
        }
        found = found || std::strcmp(attr.choices[i], attr.def.v.s) == 0;
    }
    if (found) return;
    refuse("function {}: attribute {}: its default '{}' is not among its choices", f.name,
           attr.name, attr.def.v.s);
}

void check_attribute(const catena_function& f, const catena_attr_spec& attr) {
    if (attr.kind < CATENA_ATTR_INT || attr.kind > CATENA_ATTR_DTYPE) {
        refuse("function {}: attribute {}: unknown kind {}", f.name, attr.name, attr.kind);
    }
    if (!(attr.flags & CATENA_ATTR_REQUIRED)) {
        if (attr.def.kind != attr.kind) {
            refuse("function {}: attribute {}: default of kind {}, expected {}", f.name, attr.name,
                   attr.def.kind, attr.kind);
        }
        if (is_list(attr.kind) && attr.def.n > longest_list) {
            refuse("function {}: attribute {}: its default: expected at most {} values, got {}",
                   f.name, attr.name, longest_list, attr.def.n);
        }
        if (attr.kind == CATENA_ATTR_BOOL && attr.def.v.i != 0 && attr.def.v.i != 1) {
            refuse("function {}: attribute {}: its default: expected 0 or 1, got {}", f.name,
                   attr.name, attr.def.v.i);
        }
        const bool needs_pointer =
            attr.kind == CATENA_ATTR_STRING || (is_list(attr.kind) && attr.def.n);
        if (needs_pointer && !attr.def.v.s) {
            refuse("function {}: attribute {}: its default is NULL", f.name, attr.name);
        }
    }
    check_range(f, attr);
    check_choices(f, attr);
}

void check_flags(const catena_function& f) {
    if (retains_beyond(f.retain_x, f.n_inputs, is_variadic(f))) {
        refuse("function {}: retain_x {:#x}: it has {} inputs", f.name, f.retain_x, f.n_inputs);
    }
    if (retains_beyond(f.retain_y, f.n_outputs, false)) {
        refuse("function {}: retain_y {:#x}: it has {} outputs", f.name, f.retain_y, f.n_outputs);
    }
    if (f.gradient && f.grad_function) {
        refuse("function {} has both gradient() and grad_function", f.name);
    }
    if (f.grad_function) {
        check_id(f.grad_function, fmt::format("the grad_function of {}", f.name).c_str());
    }
    if ((f.flags & CATENA_FUNCTION_ADDITION) && (f.n_inputs != 2 || f.n_outputs != 1)) {
        refuse(
            "function {}: flags: it claims to be the addition: expected 2 inputs and 1 output, got "
            "{} and {}",
            f.name, f.n_inputs, f.n_outputs);
    }
    if (!(f.flags & CATENA_FUNCTION_VIEW)) return;
    if (f.n_outputs != 1 || !f.n_inputs ||
        (f.inputs[0]->flags & (CATENA_PORT_OPTIONAL | CATENA_PORT_MUTATED))) {
        refuse("function {}: a view has one output and a first input that is always there", f.name);
    }
    if (std::strcmp(f.inputs[0]->type_var, f.outputs[0]->type_var) != 0) {
        refuse("function {}: a view has one type_var, got {} and {}", f.name, f.inputs[0]->type_var,
               f.outputs[0]->type_var);
    }
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

// Words NAME=VALUE; names are those of ports and attributes, and what is required is there.
void check_example(const catena_function& f, const char* example) {
    const std::size_t length = strnlen(example, longest_example + 1);
    if (length > longest_example) {
        refuse("function {}: an example of over {} bytes", f.name, longest_example);
    }
    const std::string_view text(example, length);
    for (const char c : text) {
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
            refuse("function {}: an example that is no text", f.name);
        }
    }
    std::set<std::string_view> given;
    std::string_view rest = text.substr(std::min(text.find_first_not_of(' '), text.size()));
    while (!rest.empty()) {
        const std::string_view word = take_word(rest);
        const std::size_t equals = word.find('=');
        if (equals == word.npos || equals + 1 == word.size()) {
            refuse("function {}: example '{}': expected NAME=VALUE, got '{}'", f.name, text, word);
        }
        given.insert(word.substr(0, equals));
    }
    std::set<std::string_view> known;
    const auto meet = [&](std::string_view name, bool required) {
        known.insert(name);
        if (required && !given.contains(name)) {
            refuse("function {}: example '{}': {} is missing", f.name, text, name);
        }
    };
    for (std::uint32_t i = 0; i < f.n_inputs; ++i) {
        meet(f.inputs[i]->name, !(f.inputs[i]->flags & CATENA_PORT_OPTIONAL));
    }
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        meet(f.attrs[i]->name, f.attrs[i]->flags & CATENA_ATTR_REQUIRED);
    }
    for (const std::string_view name : given) {
        if (!known.contains(name)) {
            refuse("function {}: example '{}': it has no {}", f.name, text, name);
        }
    }
}

void check_examples(const catena_function& f) {
    if (!CATENA_HAS(&f, catena_function, examples) || !f.examples) return;
    for (std::uint32_t i = 0; f.examples[i]; ++i) {
        if (i == most_examples) {
            refuse("function {}: over {} examples; is the list's end NULL?", f.name, most_examples);
        }
        check_example(f, f.examples[i]);
    }
}

}  // namespace

void check_function(const catena_function& f) {
    check_id(f.name, "a function");
    if (!f.infer) refuse("function {} has no infer()", f.name);
    if (f.version < 1) refuse("function {}: version: expected at least 1, got 0", f.name);
    if (f.version > newest_version) {
        refuse("function {}: version: expected at most {}, got {}", f.name, newest_version,
               f.version);
    }
    check_ports(f, f.inputs, f.n_inputs, true);
    check_ports(f, f.outputs, f.n_outputs, false);
    check_flags(f);
    if (f.n_attrs > CATENA_MAX_ATTRS) refuse("function {}: too many attributes", f.name);
    if (f.n_attrs && !f.attrs) refuse("function {}: attributes are NULL", f.name);
    std::set<std::string_view> names;
    for (std::uint32_t i = 0; i < f.n_attrs; ++i) {
        check_struct(f.attrs[i], "attribute", i);
        const catena_attr_spec& attr = *f.attrs[i];
        check_name(attr.name, fmt::format("attribute {} of {}", i, f.name).c_str());
        if (!names.insert(attr.name).second) {
            refuse("function {}: attribute {} is there twice", f.name, attr.name);
        }
        check_attribute(f, attr);
    }
    check_examples(f);
    if (count_type_vars(f) > CATENA_MAX_TYPE_VARS) {
        refuse("function {}: more than {} type variables", f.name, +CATENA_MAX_TYPE_VARS);
    }
}

std::uint32_t count_type_vars(const catena_function& f) {
    std::set<std::string_view> types;
    for (std::uint32_t i = 0; i < f.n_inputs; ++i) types.insert(f.inputs[i]->type_var);
    for (std::uint32_t i = 0; i < f.n_outputs; ++i) types.insert(f.outputs[i]->type_var);
    return static_cast<std::uint32_t>(types.size());
}

void check_grad_function(const catena_function& f, const catena_function& g) {
    bool same = f.n_attrs == g.n_attrs;
    for (std::uint32_t i = 0; same && i < f.n_attrs; ++i) {
        same = f.attrs[i]->kind == g.attrs[i]->kind &&
               std::strcmp(f.attrs[i]->name, g.attrs[i]->name) == 0;
    }
    if (!same) {
        refuse("function {}: its grad_function {} has other attributes", f.name, f.grad_function);
    }
    if (is_variadic(f) || is_variadic(g)) return;
    const auto n_inputs =
        static_cast<std::uint32_t>(std::popcount(f.retain_x) + std::popcount(f.retain_y)) +
        f.n_outputs;
    std::uint32_t n_outputs = 0;
    for (std::uint32_t i = 0; i < f.n_inputs; ++i) {
        n_outputs += !(f.inputs[i]->flags & CATENA_PORT_NON_DIFFERENTIABLE);
    }
    if (g.n_inputs != n_inputs || g.n_outputs != n_outputs) {
        refuse(
            "function {}: its grad_function {}: expected {} inputs and {} outputs, got {} and {}",
            f.name, f.grad_function, n_inputs, n_outputs, g.n_inputs, g.n_outputs);
    }
}

}  // namespace catena
