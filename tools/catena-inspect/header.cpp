// Writes catena/functions.hpp: inline functions with typed parameters for each descriptor.
#include "inspect.hpp"

#include <catena/core/dtype.hpp>
#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>

namespace catena::inspect {
namespace {

// Returns a valid C++ identifier; a keyword gets an underscore.
std::string identifier(std::string_view name) {
    return as_identifier(
        name,
        " and asm auto bool break case catch char class concept const continue default delete do "
        "double else enum explicit export extern false float for friend goto if inline int long "
        "mutable namespace new not operator or private protected public register requires return "
        "short signed sizeof static struct switch template this throw true try typedef typename "
        "union unsigned using virtual void volatile while xor ");
}

std::string number(double value) {
    if (std::isnan(value)) return "std::numeric_limits<double>::quiet_NaN()";
    if (std::isinf(value))
        return std::string(value < 0 ? "-" : "") + "std::numeric_limits<double>::infinity()";
    return decimal(value);
}

std::string pascal_case(std::string_view name) {
    std::string result;
    bool up = true;
    for (const char c : name) {
        if (c != '_')
            result += up ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
        up = c == '_';
    }
    return result;
}

// The types of inputs and results of a wrapper.
struct Operand {
    std::string_view one;
    std::string_view list;
    std::string_view results;  // suffix of the struct for several outputs
};
constexpr Operand variables{"Variable", "VariableList", "Result"};
constexpr Operand arrays{"Array", "ArrayList", "Arrays"};

// Writes the wrappers of one function: its handle, an overload on variables and one on arrays.
class Wrapper {
public:
    Wrapper(const catena_function& f, std::string_view short_name)
        : f_(f), name_(identifier(short_name)) {
        for (std::uint32_t i = 0; i < f.n_outputs; ++i) {
            if (!has(f.outputs[i]->flags, CATENA_PORT_HIDDEN)) visible_.push_back(i);
        }
        for (const auto* port : inputs(f)) needs_input_ |= !has(port->flags, CATENA_PORT_OPTIONAL);
        creates_ = f.n_inputs == 0;
    }

    // Returns the declaration for readers, with the members of the result if there are several.
    std::string signature() const {
        std::string members;
        if (!one_result()) {
            for (const auto i : visible_) members += " ." + identifier(f_.outputs[i]->name);
        }
        return declaration(creates_ ? arrays : variables) +
               (members.empty() ? "" : "  //" + members);
    }

    std::string text() const {
        // Without a required input, the overloads would be ambiguous, so there is only one.
        return docs() + (creates_ ? "" : overload(variables)) +
               (creates_ || needs_input_ ? overload(arrays) : "") + '\n';
    }

    // Returns the code of a function that binds the PluginFunction once for both overloads.
    std::string handle() const {
        const auto list = attributes(f_);
        const auto names = joined(list, [](const auto* a) { return literal(a->name); });
        const auto parameters = joined(list, [](const auto* a) {
            return fmt::format("{} {}", cpp_type(*a).name, identifier(a->name));
        });
        const std::string body =
            list.empty() ? fmt::format(
                               "    static const PluginFunction function_({});\n"
                               "    return function_;\n",
                               literal(f_.name))
                         : fmt::format(
                               "    thread_local constinit ThreadFunction function_({}, {{{}}});\n"
                               "    return function_({{{}}});\n",
                               literal(f_.name), names, values());
        return fmt::format("inline const PluginFunction& {}({}) {{\n{}}}\n", name_, parameters,
                           body);
    }

private:
    // Returns the names of the attributes, separated by commas.
    std::string values() const {
        return joined(attributes(f_), [](const auto* a) { return identifier(a->name); });
    }
    bool one_result() const { return visible_.size() == 1; }
    std::string result_type(const Operand& on) const {
        return one_result() ? std::string(on.one) : pascal_case(name_) + std::string(on.results);
    }

    std::string docs() const {
        std::string text = cpp_comment(f_.doc ? f_.doc : "");
        const auto add = [&](std::string_view name, const char* doc) {
            if (doc && *doc) text += cpp_comment(fmt::format("  {}: {}", identifier(name), doc));
        };
        for (const auto* port : inputs(f_)) add(port->name, port->doc);
        for (const auto* attribute : attributes(f_)) add(attribute->name, attribute->doc);
        return text;
    }

    std::string overload(const Operand& on) const {
        return result_struct(on) + fmt::format("inline {} {{\n{}}}\n", declaration(on), body(on));
    }
    std::string declaration(const Operand& on) const {
        return fmt::format("{} {}({})", result_type(on), name_, parameters(on));
    }

    std::string result_struct(const Operand& on) const {
        if (one_result()) return {};
        std::string members;
        for (const auto i : visible_)
            members += fmt::format("    {} {};\n", on.one, identifier(f_.outputs[i]->name));
        return fmt::format("struct {} {{\n{}}};\n", result_type(on), members);
    }

    // Lists required parameters first.
    std::string parameters(const Operand& on) const {
        std::vector<std::string> needed;
        std::vector<std::string> others;
        for (const auto* port : inputs(f_)) {
            const std::string text = fmt::format(
                "const {}& {}", has(port->flags, CATENA_PORT_VARIADIC) ? on.list : on.one,
                identifier(port->name));
            if (has(port->flags, CATENA_PORT_OPTIONAL)) others.push_back(text + " = {}");
            else needed.push_back(text);
        }
        for (const auto* attribute : attributes(f_)) {
            const CppType type = cpp_type(*attribute);
            const std::string text = fmt::format("{} {}", type.name, identifier(attribute->name));
            if (has(attribute->flags, CATENA_ATTR_REQUIRED)) needed.push_back(text);
            else others.push_back(text + " = " + type.def);
        }
        needed.insert(needed.end(), others.begin(), others.end());
        if (creates_) needed.emplace_back("Device device = {}");
        return fmt::format("{}", fmt::join(needed, ", "));
    }

    std::string body(const Operand& on) const {
        const bool graph = on.one == variables.one;
        const std::string function = fmt::format("handles::{}({})", name_, values());
        std::vector<std::string> single;
        std::string variadic;
        for (const auto* port : inputs(f_)) {
            const std::string name = identifier(port->name);
            if (has(port->flags, CATENA_PORT_VARIADIC)) variadic = name;
            else single.push_back((graph ? "&" : "") + name);
        }
        const std::string ports = fmt::format("{}", fmt::join(single, ", "));
        const std::string_view type = graph ? "Variable* const" : "Array";
        std::string given = fmt::format("    const {} inputs_[] = {{{}}};\n", type, ports);
        if (!variadic.empty()) {
            given = fmt::format(
                "    const auto list_ = {}.after({{{}}});\n"
                "    const std::span inputs_(list_.data(), list_.size());\n",
                variadic, ports);
        } else if (ports.empty()) {
            given = fmt::format(
                "    const using_device scope_{{device ? device : Device::current()}};\n"
                "    const std::span<const {}> inputs_;\n",
                type);
        }
        if (one_result() && visible_[0] == 0)
            return given + fmt::format("    return {}.first(inputs_);\n", function);
        std::string text =
            given + (graph ? fmt::format("    auto outputs_ = {}(inputs_);\n", function)
                           : fmt::format("    Array outputs_[{}];\n"
                                         "    {}.forward(inputs_, outputs_);\n",
                                         visible_.back() + 1, function));
        const std::string results = joined(
            visible_, [](std::uint32_t i) { return fmt::format("std::move(outputs_[{}])", i); });
        return text + fmt::format("    return {}{}{};\n", one_result() ? "" : "{", results,
                                  one_result() ? "" : "}");
    }

    const catena_function& f_;
    std::string name_;
    std::vector<std::uint32_t> visible_;
    bool needs_input_ = false;
    bool creates_ = false;  // has no inputs: the result has no graph, and a device is a parameter
};

// Whether programs call it: it has results, updates nothing in place, and is not internal.
bool is_callable(const catena_function& f) {
    if (has(f.flags, CATENA_FUNCTION_INTERNAL)) return false;
    const auto is = [](std::uint32_t flag) {
        return [flag](const auto* port) { return has(port->flags, flag); };
    };
    return !std::ranges::all_of(outputs(f), is(CATENA_PORT_HIDDEN)) &&
           std::ranges::none_of(inputs(f), is(CATENA_PORT_MUTATED));
}

// Returns the names of functions that are gradients of others.
std::set<std::string_view> gradients() {
    std::set<std::string_view> names;
    for (const auto& name : function_names())
        if (const char* of = function_descriptor(name).grad_function) names.insert(of);
    return names;
}

}  // namespace

std::string as_identifier(std::string_view name, std::string_view keywords) {
    std::string result;
    for (const char c : name) result += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    const bool is_keyword = keywords.find(" " + result + " ") != keywords.npos;
    return is_keyword ? result + '_' : result;
}

std::string literal(std::string_view text) {
    std::string result = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') result += '\\';
        if (c == '\n') result += "\\n";
        else result += c;
    }
    return result + '"';
}

std::string decimal(double value) {
    const std::string text = fmt::format("{}", value);
    return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

CppType cpp_type(const catena_attr_spec& attribute) {
    const catena_value& def = attribute.def;
    const bool known = !has(attribute.flags, CATENA_ATTR_REQUIRED);  // whether it has a default
    switch (attribute.kind) {
        case CATENA_ATTR_INT: return {"std::int64_t", known ? std::to_string(def.v.i) : ""};
        case CATENA_ATTR_FLOAT: return {"double", known ? number(def.v.f) : ""};
        case CATENA_ATTR_BOOL: return {"bool", def.v.i ? "true" : "false"};
        case CATENA_ATTR_STRING:
            return {"std::string_view", known ? literal(def.v.s ? def.v.s : "") : ""};
        case CATENA_ATTR_INTS:
            return {
                "Ints",
                known ? fmt::format("{{{}}}", fmt::join(std::span(def.v.ints, def.n), ", ")) : ""};
        case CATENA_ATTR_FLOATS:
            if (known && def.n > 0) break;
            return {"std::span<const double>", "{}"};
        case CATENA_ATTR_DTYPE: return {"Dtype", known ? "Dtype::" + name(def.v.dtype) : ""};
        default: break;
    }
    throw UnsupportedError(
        fmt::format("[header] attribute {}: expected a kind and default that C++ "
                    "can write, got kind {}",
                    attribute.name, attribute.kind));
}

std::string cpp_comment(std::string_view text) {
    std::string result;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        line.erase(line.find_last_not_of(' ') + 1);
        result += line.empty() ? "//\n" : "// " + line + '\n';
    }
    return result;
}

std::string cpp_signature(const catena_function& f) {
    if (!is_callable(f) || gradients().contains(f.name)) return {};
    const std::string_view name = f.name;
    try {
        return Wrapper(f, name.substr(name.rfind('.') + 1)).signature();
    } catch (const UnsupportedError&) {
        return {};
    }
}

bool is_namespace(std::string_view name) {
    const auto end = name.find("::");
    const std::string_view word = name.substr(0, end);
    const bool good = !word.empty() && !std::isdigit(static_cast<unsigned char>(word[0])) &&
                      identifier(word) == word;
    return good && (end == name.npos || is_namespace(name.substr(end + 2)));
}

std::vector<std::string> wrapped_functions(const HeaderOptions& options) {
    const auto others = gradients();
    const auto& from = options.functions;
    std::vector<std::string> names = function_names();
    std::erase_if(names, [&](const std::string& name) {
        return !name.starts_with(options.prefix) || others.contains(name) ||
               (!from.empty() && std::ranges::count(from, name) == 0) ||
               name.find('.', options.prefix.size()) != name.npos ||
               std::ranges::count(options.omitted, name.substr(options.prefix.size())) > 0 ||
               !is_callable(function_descriptor(name));
    });
    return names;
}

std::string write_header(const HeaderOptions& options) {
    std::string text = fmt::format(
        "// Functions of the loaded plugins as C++ functions. Written by catena-inspect; do not "
        "edit.\n"
        "// Each has two overloads: on variables, which records the graph, and on arrays, which "
        "does not.\n"
        "// Results are new; errors are those of catena::PluginFunction.\n"
        "#pragma once\n\n"
        "#include <catena/bound_function.hpp>\n\n"
        "#include <cstdint>\n#include <limits>\n#include <span>\n#include <string_view>\n"
        "#include <utility>\n\n"
        "namespace {} {{\n\n{}",
        options.space,
        options.space.starts_with("catena::") ? "" : "using namespace ::catena;\n\n");
    std::string handles;
    std::string wrappers;
    for (const auto& name : wrapped_functions(options)) {
        const auto short_name = std::string_view(name).substr(options.prefix.size());
        const Wrapper wrapper(function_descriptor(name), short_name);
        handles += wrapper.handle();
        wrappers += wrapper.text();
    }
    if (!handles.empty()) text += "namespace handles {\n" + handles + "}  // namespace handles\n\n";
    text += wrappers;
    return text + fmt::format("}}  // namespace {}\n", options.space);
}

}  // namespace catena::inspect
