// Writes type stubs for Python (PEP 484): the signature that each function has in the package catena.
#include "inspect.hpp"

#include <catena/core/dtype.hpp>
#include <catena/core/plugin_function.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace catena::inspect {
namespace {

std::string python_name(std::string_view name) {
    return as_identifier(
        name,
        " False None True and as assert async await break class continue def del elif else except "
        "finally for from global if import in is lambda nonlocal not or pass raise return try "
        "while with yield ");
}

std::string stub(const catena_function& f, std::string_view short_name) {
    std::vector<std::string> needed;
    std::vector<std::string> others;
    for (const auto* port : inputs(f)) {
        // A list of x is called xs.
        const bool list = has(port->flags, CATENA_PORT_VARIADIC) && std::strlen(port->name) == 1;
        const std::string name = python_name(port->name) + (list ? "s" : "");
        if (has(port->flags, CATENA_PORT_OPTIONAL))
            others.push_back(name + ": ArrayLike | None = None");
        else if (has(port->flags, CATENA_PORT_VARIADIC))
            needed.push_back(name + ": Sequence[ArrayLike] | ArrayLike");
        else needed.push_back(name + ": ArrayLike");
    }
    for (const auto* attribute : attributes(f)) {
        auto& list = has(attribute->flags, CATENA_ATTR_REQUIRED) ? needed : others;
        list.push_back(python_parameter(*attribute));
    }
    needed.insert(needed.end(), others.begin(), others.end());
    if (f.n_inputs == 0) needed.emplace_back("device: Any = None");
    const auto visible = std::ranges::count_if(
        outputs(f), [](const auto* port) { return !has(port->flags, CATENA_PORT_HIDDEN); });
    const std::vector<const char*> results(static_cast<std::size_t>(visible), "Variable");
    std::string doc = f.doc != nullptr ? f.doc : "";
    std::ranges::replace(doc, '\\', '/');
    return fmt::format("\ndef {}({}) -> {}{}{}:\n    \"\"\"{}\"\"\"\n    ...\n",
                       python_name(short_name), fmt::join(needed, ", "),
                       visible == 1 ? "" : "tuple[", fmt::join(results, ", "),
                       visible == 1 ? "" : "]", doc.substr(0, doc.find('\n')));
}

}  // namespace

std::string python_parameter(const catena_attr_spec& attribute) {
    const catena_value& def = attribute.def;
    std::string type = "Any";
    std::string value = "None";
    switch (attribute.kind) {
        case CATENA_ATTR_INT:
            type = "int";
            value = std::to_string(def.v.i);
            break;
        case CATENA_ATTR_FLOAT:
            type = "float";
            if (std::isfinite(def.v.f)) value = decimal(def.v.f);
            break;
        case CATENA_ATTR_BOOL:
            type = "bool";
            value = def.v.i != 0 ? "True" : "False";
            break;
        case CATENA_ATTR_STRING: {
            std::vector<std::string> choices;
            for (const char* const* c = attribute.choices; c != nullptr && *c != nullptr; ++c)
                choices.push_back(fmt::format("\"{}\"", *c));
            type = choices.empty() ? "str" : fmt::format("Literal[{}]", fmt::join(choices, ", "));
            value = fmt::format("\"{}\"", def.v.s != nullptr ? def.v.s : "");
            break;
        }
        case CATENA_ATTR_INTS:
            type = "int | Sequence[int]";
            if (def.n == 1) value = std::to_string(def.v.ints[0]);
            else if (def.n > 1)
                value = fmt::format("({})", fmt::join(std::span(def.v.ints, def.n), ", "));
            break;
        case CATENA_ATTR_FLOATS: type = "Sequence[float]"; break;
        case CATENA_ATTR_DTYPE: value = fmt::format("\"{}\"", name(def.v.dtype)); break;
        default: break;
    }
    const std::string text = fmt::format("{}: {}", python_name(attribute.name), type);
    if (has(attribute.flags, CATENA_ATTR_REQUIRED)) return text;
    return fmt::format("{}{} = {}", text, value == "None" && type != "Any" ? " | None" : "", value);
}

std::string write_stubs(const HeaderOptions& options) {
    std::string text =
        "# Types of plugin functions. Written by catena-inspect; do not edit.\n"
        "from collections.abc import Sequence\n"
        "from typing import Any, Literal\n\n"
        "from catena import Variable\n"
        "from catena._core import ArrayLike\n";
    for (const auto& name : wrapped_functions(options))
        text +=
            stub(function_descriptor(name), std::string_view(name).substr(options.prefix.size()));
    return text;
}

}  // namespace catena::inspect
