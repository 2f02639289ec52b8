// Writes the classes of optimizers, in C++ and Python. plugins/optimizer/update_types.hpp says what
// makes a function an update rule, and what the names of its hyperparameters mean.
#include "inspect.hpp"

#include <catena/core/error.hpp>
#include <catena/core/plugin_function.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <sstream>

namespace catena::inspect {
namespace {

using Names = std::vector<std::string>;

// A class that a line of the doc declares: "- AMSGrad(alpha, amsgrad=true): Adam that ...".
struct Declared {
    std::string name;
    std::string text;
    Names arguments;                           // of the constructor
    std::map<std::string, std::string> fixed;  // values of others
};

class Rule {
public:
    Rule(const catena_function& function, std::string name)
        : f(function), short_name(std::move(name)) {
        static const std::regex line_of_class(R"((?:- )?([A-Z]\w*)\(([\w=., ]*)\): (.*))");
        static const std::regex argument(R"((\w+)(?:=([\w.]+))?)");
        std::istringstream lines(f.doc);
        std::smatch match;
        for (std::string line; std::getline(lines, line);) {
            if (!std::regex_match(line, match, line_of_class)) {
                if (!line.empty() || !text.empty()) text += line + '\n';
                continue;
            }
            Declared& added = classes.emplace_back(Declared{match[1], match[3], {}, {}});
            const std::string list = match[2];
            for (std::sregex_iterator each(list.begin(), list.end(), argument), end; each != end;
                 ++each) {
                const std::string wanted = (*each)[1];
                if (!has(wanted))
                    throw InvalidError(
                        fmt::format("[optimizers] {}: expected an attribute of {}, got '{}'",
                                    added.name, f.name, wanted));
                if ((*each)[2].matched) added.fixed[wanted] = (*each)[2];
                else added.arguments.push_back(wanted);
            }
        }
    }

    const catena_attr_spec* find(std::string_view name) const {
        for (const auto* a : attributes(f))
            if (a->name == name) return a;
        return nullptr;
    }
    bool has(std::string_view name) const { return find(name) != nullptr; }
    // Whether the optimizer passes it, and it is no hyperparameter.
    static bool is_passed(std::string_view name) {
        return name == "t" || name.starts_with("initial_");
    }
    std::string rate() const { return has("lr") ? "lr" : has("alpha") ? "alpha" : ""; }
    // Adam's rate depends on the step.
    bool corrects_bias() const {
        return rate() == "alpha" && has("beta1") && has("beta2") && has("t");
    }
    // The name in options: that of the function, and for subclasses "ada_bound", "ams_grad".
    std::string option(const Declared& declared) const {
        if (&declared == &classes[0]) return short_name;
        static const std::regex before_word("[a-z](?=[A-Z])|.(?=[A-Z][a-z])");
        std::string name = std::regex_replace(declared.name, before_word, "$&_");
        std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
        return name;
    }
    // The state, and the attribute that each array depends on, if it is optional.
    std::vector<std::pair<std::string, std::string>> state() const {
        std::vector<std::pair<std::string, std::string>> names;
        for (const auto* port : inputs(f).subspan(2)) {
            const bool optional = inspect::has(port->flags, CATENA_PORT_OPTIONAL);
            const std::string on(optional ? inspect::condition(*port) : "");
            if (optional && !has(on))
                throw InvalidError(fmt::format(
                    "[optimizers] {}.{}: expected a doc that ends with ', if ATTRIBUTE', got '{}'",
                    f.name, port->name, port->doc));
            names.emplace_back(port->name, on);
        }
        return names;
    }

    const catena_function& f;
    std::string short_name;
    std::string text;  // the doc without the declarations
    std::vector<Declared> classes;
};

std::vector<Rule> rules(const HeaderOptions& options) {
    constexpr std::string_view end = "_update";
    std::vector<Rule> list;
    for (const std::string& name : function_names()) {
        const auto& from = options.functions;
        if (!name.starts_with(options.prefix) || !name.ends_with(end) ||
            (!from.empty() && std::ranges::count(from, name) == 0))
            continue;
        const auto begin = options.prefix.size();
        Rule rule(function_descriptor(name), name.substr(begin, name.size() - begin - end.size()));
        if (!rule.classes.empty()) list.push_back(std::move(rule));
    }
    return list;
}

// ---- C++. Parameters of constructors are named as the members, with an underscore.

std::string state_in_cpp(const Rule& rule) {
    if (rule.state().empty()) return {};
    Names always;
    for (const auto& [name, on] : rule.state())
        if (on.empty()) always.push_back(literal(name));
    std::string text = fmt::format("{{{}}}", fmt::join(always, ", "));
    for (const auto& [name, on] : rule.state())
        if (!on.empty()) text = fmt::format("with_state({}_, \"{}\", {})", on, name, text);
    return text;
}

std::string parameters_in_cpp(const Rule& rule, const Declared& declared) {
    return joined(declared.arguments, [&](const std::string& name) {
        const CppType type = cpp_type(*rule.find(name));
        return fmt::format("{} {}_ = {}", type.name, name, type.def);
    });
}

std::string first_class_in_cpp(const Rule& rule) {
    const Declared& declared = rule.classes[0];
    const std::string rate = rule.rate();
    const std::string scaled = rule.has("eta") ? "eta" : rate;
    Names names, values, start{"Optimizer(" + state_in_cpp(rule) + ")"}, members, privates;
    for (const auto* a : attributes(rule.f)) {
        const std::string name = a->name;
        names.push_back(literal(name));
        std::string value = name;
        if (name == "t") value = "step_";
        else if (name.starts_with("initial_")) {
            value += '_';
            start.push_back(fmt::format("{}({}_)", value, name.substr(8)));
            privates.push_back(fmt::format("    {} {};\n", cpp_type(*a).name, value));
        } else if (name == scaled) value += " * group.rate";
        else if (name == "weight_decay_rate") value += " * group.decay";
        values.push_back(value);
        if (Rule::is_passed(name)) continue;
        const CppType type = cpp_type(*a);
        const bool is_argument = std::ranges::count(declared.arguments, name) > 0;
        if (is_argument) start.push_back(fmt::format("{}({}_)", name, name));
        members.push_back(
            fmt::format("    {} {}{};\n", type.name, name, is_argument ? "" : " = " + type.def));
    }
    std::string text = fmt::format(
        "class {0} : public Optimizer {{\npublic:\n"
        "    static constexpr std::string_view name = \"{1}\";\n",
        declared.name, rule.option(declared));
    if (!rate.empty())
        text += fmt::format("    static constexpr double default_rate = {};\n",
                            cpp_type(*rule.find(rate)).def);
    text += fmt::format(
        "    explicit {}({})\n        : {} {{\n        (void)bound({{}}, 1);\n    }}\n",
        declared.name, parameters_in_cpp(rule, declared), fmt::join(start, ",\n          "));
    if (!rate.empty())
        text += fmt::format("    void set_rate(double rate) override {{ {} = rate; }}\n", rate);
    if (rule.corrects_bias())
        text +=
            "    // The factor of m / (sqrt(v) + eps) in the last step; before the first, in "
            "that.\n"
            "    double lr() const { return bias_corrected(alpha, beta1, beta2, t()); }\n";
    return text +
           fmt::format(
               "\n{}\nprivate:\n"
               "    PluginFunction step() override {{ return bound({}, t()); }}\n"
               "    const PluginFunction& bound([[maybe_unused]] const ParameterGroup& group,\n"
               "                                [[maybe_unused]] std::int64_t step_) {{\n"
               "        return update_({{{}}});\n    }}\n\n{}"
               "    BoundFunction update_{{\"{}\", {{{}}}}};\n}};\n",
               fmt::join(members, ""), rate.empty() ? "{}" : "group()", fmt::join(values, ", "),
               fmt::join(privates, ""), rule.f.name, fmt::join(names, ", "));
}

std::string subclass_in_cpp(const Rule& rule, const Declared& declared) {
    const Declared& base = rule.classes[0];
    const std::string arguments = joined(base.arguments, [&](const std::string& name) {
        if (const auto fixed = declared.fixed.find(name); fixed != declared.fixed.end())
            return fixed->second;
        if (std::ranges::count(declared.arguments, name) > 0) return name + '_';
        return cpp_type(*rule.find(name)).def;
    });
    return fmt::format(
        "class {0} : public {1} {{\npublic:\n"
        "    static constexpr std::string_view name = \"{2}\";\n"
        "    explicit {0}({3})\n        : {1}({4}) {{}}\n}};\n",
        declared.name, base.name, rule.option(declared), parameters_in_cpp(rule, declared),
        arguments);
}

std::string doc_of(const Rule& rule, const Declared& declared, bool is_first,
                   const char* argument) {
    std::string doc = declared.text + '\n';
    if (is_first && !rule.text.empty()) doc += '\n' + rule.text;
    return doc + argument;
}

// ---- Python

// "lr: float = 0.01". Chainer writes zeros as integers.
std::string parameter_in_python(const catena_attr_spec& attribute) {
    const std::string text = python_parameter(attribute);
    return text.ends_with("= 0.0") ? text.substr(0, text.size() - 2) : text;
}

// A tuple of strings.
std::string tuple(const Names& names) {
    return fmt::format("({}{})", joined(names, literal), names.size() == 1 ? "," : "");
}

std::string in_python(const Rule& rule, const Declared& declared) {
    const Declared& base = rule.classes[0];
    const bool is_first = &declared == &base;
    std::string text;
    if (is_first) {
        Names names, state, defaults, optional;
        for (const auto* a : attributes(rule.f)) {
            const std::string name = a->name;
            const bool is_argument = std::ranges::count(declared.arguments, name) > 0;
            if (is_argument || Rule::is_passed(name)) names.push_back(name);
            const std::string parameter = parameter_in_python(*a);
            if (is_argument)
                defaults.push_back(literal(name) + ": " +
                                   parameter.substr(parameter.find("= ") + 2));
        }
        for (const auto& [name, on] : rule.state()) {
            state.push_back(name);
            if (!on.empty()) optional.push_back(literal(name) + ": " + literal(on));
        }
        text = fmt::format(
            "\n\nclass {0}Rule({1}):\n    \"\"\"The update rule of {0}.\"\"\"\n\n"
            "    function = \"{2}\"\n    attributes = {3}\n    all_state = {4}\n",
            declared.name, rule.corrects_bias() ? "BiasCorrected, Rule" : "Rule", rule.f.name,
            tuple(names), tuple(state));
        if (!optional.empty())
            text += fmt::format("    optional_state = {{{}}}\n", fmt::join(optional, ", "));
        text += fmt::format("    own_defaults = {{{}}}\n", fmt::join(defaults, ", "));
    }
    std::string doc = doc_of(rule, declared, is_first, "\nArgs:\n");
    for (const std::string& name : declared.arguments)
        doc += fmt::format("    {}: {}\n", name, rule.find(name)->doc);
    text += fmt::format("\n\nclass {}({}):\n    \"\"\"", declared.name,
                        !is_first              ? base.name
                        : rule.corrects_bias() ? "BiasCorrected, FunctionOptimizer"
                                               : "FunctionOptimizer");
    std::istringstream lines(doc);
    bool indents = false;
    for (std::string line; std::getline(lines, line); indents = true)
        text += (indents && !line.empty() ? "    " : "") + line + '\n';
    text += "    \"\"\"\n\n";
    if (is_first) {
        text += fmt::format("    rule_class = {}Rule\n", declared.name);
        for (const std::string& name : declared.arguments) {
            const std::string parameter = parameter_in_python(*rule.find(name));
            text += fmt::format("    {}\n", parameter.substr(0, parameter.find(" = ")));
        }
        text += '\n';
    }
    Names passed;
    for (const std::string& name : declared.arguments) passed.push_back(name + '=' + name);
    for (const auto& [name, value] : declared.fixed)
        passed.push_back(name + '=' + (value == "true" ? "True" : value));
    return text + fmt::format("    def __init__(self, {}) -> None:\n        super().__init__({})\n",
                              joined(declared.arguments,
                                     [&](const std::string& name) {
                                         return parameter_in_python(*rule.find(name));
                                     }),
                              fmt::join(passed, ", "));
}

}  // namespace

std::string write_optimizers(const HeaderOptions& options) {
    std::string text = fmt::format(
        "// Optimizers with functions of plugins as update rules. Written by catena-inspect; do "
        "not "
        "edit.\n"
        "// Constructors throw InvalidError for arguments outside the ranges of the function's\n"
        "// attributes, and PluginError if no plugin has the function.\n"
        "#pragma once\n\n"
        "#include <catena/bound_function.hpp>\n#include <catena/optimizer.hpp>\n\n"
        "#include <tuple>\n\nnamespace {} {{\n{}",
        options.space, options.space.starts_with("catena::") ? "" : "using namespace ::catena;\n");
    std::map<std::string, std::string> names;
    for (const Rule& rule : rules(options)) {
        for (const Declared& declared : rule.classes) {
            const bool is_first = &declared == &rule.classes[0];
            std::string doc = doc_of(rule, declared, is_first, "");
            for (const auto* a : attributes(rule.f))
                if (is_first && !Rule::is_passed(a->name))
                    doc += fmt::format("  {}: {}\n", a->name, a->doc);
            text += '\n' + cpp_comment(doc) +
                    (is_first ? first_class_in_cpp(rule) : subclass_in_cpp(rule, declared));
            names[rule.option(declared)] = declared.name;
        }
    }
    return text + fmt::format(
                      "\n// Sorted by the names in options.\nusing All = std::tuple<{}>;\n\n"
                      "}}  // namespace {}\n",
                      joined(names, [](const auto& each) { return each.second; }), options.space);
}

std::string write_python_optimizers(const HeaderOptions& options) {
    std::string text;
    Names names, modules;
    for (const Rule& rule : rules(options)) {
        modules.push_back(rule.short_name);
        names.push_back(rule.classes[0].name + "Rule");
        for (const Declared& declared : rule.classes) {
            names.push_back(declared.name);
            text += in_python(rule, declared);
        }
    }
    return fmt::format(
        "\"\"\"All optimizers. Written by catena-inspect; do not edit.\"\"\"\n"
        "from typing import TYPE_CHECKING\n\n"
        "from catena import function_optimizer\n"
        "from catena.function_optimizer import *\n"
        "from catena.function_optimizer import BiasCorrected, FunctionOptimizer\n"
        "from catena.update_rule import Rule\n\n"
        "__all__ = [*function_optimizer.__all__, {}]\n\n"
        "# Chainer's modules, whose contents are here.\n"
        "_modules = {}\n\n"
        "if not TYPE_CHECKING:\n"
        "    def __getattr__(name):\n"
        "        return function_optimizer.missing(name, __name__, _modules, __all__)\n{}",
        joined(names, literal), tuple(modules), text);
}

}  // namespace catena::inspect
