// Lists functions and shows single ones, for people.
#include "inspect.hpp"

#include <catena/abi/kernel.h>
#include <catena/core/dtype.hpp>
#include <catena/core/plugin_function.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

namespace catena::inspect {
namespace {

std::string text_of(const catena_value& value) {
    switch (value.kind) {
        case CATENA_ATTR_INT: return fmt::format("{}", value.v.i);
        case CATENA_ATTR_FLOAT: return fmt::format("{}", value.v.f);
        case CATENA_ATTR_BOOL: return value.v.i ? "true" : "false";
        case CATENA_ATTR_STRING: return fmt::format("'{}'", value.v.s ? value.v.s : "");
        case CATENA_ATTR_INTS: return fmt::format("{}", std::span(value.v.ints, value.n));
        case CATENA_ATTR_FLOATS: return fmt::format("{}", std::span(value.v.floats, value.n));
        case CATENA_ATTR_DTYPE: return name(value.v.dtype);
        default: return "?";
    }
}

std::string_view kind_of(std::int32_t kind) {
    constexpr std::string_view names[] = {"?",      "int",  "float",  "bool",
                                          "string", "ints", "floats", "dtype"};
    return kind >= 1 && kind <= 7 ? names[kind] : names[0];
}

std::string signature(const catena_function& f) {
    std::string arguments;
    const auto add = [&](const std::string& text) {
        arguments += (arguments.empty() ? "" : ", ") + text;
    };
    for (const auto* port : inputs(f)) {
        add(std::string(port->name) + (has(port->flags, CATENA_PORT_OPTIONAL) ? "?" : "") +
            (has(port->flags, CATENA_PORT_VARIADIC) ? "..." : ""));
    }
    for (const auto* attribute : attributes(f)) {
        const bool required = has(attribute->flags, CATENA_ATTR_REQUIRED);
        add(attribute->name + (required ? "" : "=" + text_of(attribute->def)));
    }
    return fmt::format("{}({})", f.name, arguments);
}

std::string_view first_line(const char* doc) {
    const std::string_view text = doc ? doc : "";
    return text.substr(0, text.find('\n'));
}

// ": text", or nothing.
std::string colon(const char* doc) { return doc && *doc ? fmt::format(": {}", doc) : ""; }

std::string port_line(const catena_port_spec& port) {
    constexpr std::pair<std::uint32_t, std::string_view> words[] = {
        {CATENA_PORT_OPTIONAL, "optional"},
        {CATENA_PORT_VARIADIC, "one or more"},
        {CATENA_PORT_NON_DIFFERENTIABLE, "no gradient"},
        {CATENA_PORT_MUTATED, "updated in place"},
        {CATENA_PORT_HIDDEN, "not returned"}};
    std::string marks;
    for (const auto& [flag, word] : words) {
        if (has(port.flags, flag)) marks += fmt::format(", {}", word);
    }
    return fmt::format("    {} ({}{}){}\n", port.name, port.type_var, marks, colon(port.doc));
}

}  // namespace

std::string list_functions() {
    std::string text;
    for (const auto& name : function_names()) {
        const catena_function& f = function_descriptor(name);
        if (has(f.flags, CATENA_FUNCTION_INTERNAL)) continue;
        text += fmt::format("{}\n    {}\n", signature(f), first_line(f.doc));
    }
    return text;
}

std::string show_function(const std::string& function) {
    const catena_function& f = function_descriptor(function);
    std::string text = fmt::format("{}\nversion {}\n\n{}\n\ninputs\n", signature(f), f.version,
                                   f.doc ? f.doc : "");
    for (const auto* port : inputs(f)) text += port_line(*port);
    text += "outputs\n";
    for (const auto* port : outputs(f)) text += port_line(*port);
    if (f.n_attrs > 0) text += "attributes\n";
    for (const auto* attribute : attributes(f)) {
        text += fmt::format("    {} ({}", attribute->name, kind_of(attribute->kind));
        if (has(attribute->flags, CATENA_ATTR_REQUIRED)) text += ", required";
        else text += ", default " + text_of(attribute->def);
        if (has(attribute->flags, CATENA_ATTR_RANGED)) {
            text += fmt::format(", {} to {}", text_of(attribute->lo), text_of(attribute->hi));
        }
        for (auto choice = attribute->choices; choice && *choice; ++choice) {
            text +=
                fmt::format("{}'{}'", choice == attribute->choices ? ", one of " : ", ", *choice);
        }
        text += ")" + colon(attribute->doc) + '\n';
    }
    text +=
        fmt::format("gradient\n    {}\nkernels\n",
                    has(f.flags, CATENA_FUNCTION_NOT_DIFFERENTIABLE) ? "none: not differentiable"
                    : f.gradient      ? "a composition of functions: any order"
                    : f.grad_function ? std::string("the function ") + f.grad_function
                                      : "by kernels: first order");
    for (const auto& kernel : kernels_of(function)) {
        std::string rows;
        for (const auto& row : kernel.dtypes) rows += fmt::format(" ({})", fmt::join(row, ", "));
        text +=
            fmt::format("    {} {}{}{}{} priority {} from {}:{}\n",
                        kernel.phase == CATENA_PHASE_FORWARD ? "forward" : "backward",
                        kernel.device, kernel.isa.empty() ? "" : " ", kernel.isa,
                        kernel.variant.empty() ? "" : fmt::format(" variant {}", kernel.variant),
                        kernel.priority, kernel.plugin, rows);
    }
    return text;
}

}  // namespace catena::inspect
