// catena call: calls a function on arrays and computes gradients of first and second order; and
// catena update: runs steps of an optimizer.
#include "commands.hpp"

#include <catena/core/tables.hpp>
#include <catena/diagnostics/kernels.hpp>

#include <fmt/ranges.h>
#include <inspect.hpp>
#include <parse_json.hpp>

#include <algorithm>
#include <charconv>
#include <limits>
#include <regex>

namespace catena::command {
namespace {

using inspect::has;
using nlohmann::json;

const catena_attr_spec& spec_of(const catena_function& function, std::string_view name) {
    std::string names;
    for (const auto* spec : std::span(function.attrs, function.n_attrs)) {
        if (spec->name == name) return *spec;
        names += fmt::format("{}{}", names.empty() ? "" : ", ", spec->name);
    }
    throw InvalidError(fmt::format("[{}] attribute: expected {}, got {}", function.name,
                                   names.empty() ? "none" : "one of " + names, beginning(name)));
}

// Whether the value is an integer that fits into 64 bits with a sign; a larger one would wrap.
bool is_integer(const json& value) {
    return value.is_number_integer() &&
           (!value.is_number_unsigned() ||
            value.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max());
}

// Converts a value to an attribute of the kind. Returns false if the value is of another kind.
bool convert(const json& value, std::int32_t kind, AttributeValue& out) {
    const auto all = [&](auto is) {
        return value.is_array() && std::all_of(value.begin(), value.end(), is);
    };
    // Stores the value as a T if `is` is true; returns `is`.
    const auto take = [&]<class T>(T, bool is) {
        if (is) out = value.get<T>();
        return is;
    };
    const bool number = value.is_number(), text = value.is_string();
    switch (kind) {
        case CATENA_ATTR_INT: return take(std::int64_t(), is_integer(value));
        case CATENA_ATTR_FLOAT: return take(double(), number);
        case CATENA_ATTR_BOOL: return take(bool(), value.is_boolean());
        case CATENA_ATTR_INTS:
            if (is_integer(value)) out = std::vector{value.get<std::int64_t>()};
            return is_integer(value) || take(std::vector<std::int64_t>(), all(is_integer));
        case CATENA_ATTR_FLOATS:
            if (number) out = std::vector{value.get<double>()};
            return number ||
                   take(std::vector<double>(), all([](const json& v) { return v.is_number(); }));
        case CATENA_ATTR_STRING: return take(std::string(), text);
        case CATENA_ATTR_DTYPE:
            if (text) out = dtype_from_name(value.get<std::string>());
            return text;
        default: return false;
    }
}

AttributeValue parse(const catena_function& function, const catena_attr_spec& spec,
                     const std::string& text) {
    AttributeValue result;
    const json value = parse_json(text);
    if (!value.is_discarded() && convert(value, spec.kind, result)) return result;
    if (spec.kind == CATENA_ATTR_STRING) return text;
    if (spec.kind == CATENA_ATTR_DTYPE && value.is_discarded()) return dtype_from_name(text);
    constexpr std::string_view kinds[] = {
        "",           "an integer of 64 bits",      "a number",       "true or false",
        "a \"text\"", "[integers of 64 bits, ...]", "[numbers, ...]", "the name of a dtype"};
    throw InvalidError(fmt::format("[{}] attribute {}: expected {} as JSON, got {}", function.name,
                                   spec.name, kinds[spec.kind], beginning(text)));
}

// Converts settings to attributes of the kinds that the function declares. VALUE is JSON; a string
// attribute takes VALUE literally unless it is a JSON string, and a dtype if VALUE is not JSON.
// Throws InvalidError for any other value.
using Attributes = std::map<std::string, AttributeValue>;
Attributes attributes_of(const catena_function& function, const Settings& settings) {
    Attributes values;
    for (const std::string& setting : settings) {
        const auto equals = setting.find('=');
        if (equals == setting.npos || equals == 0)
            throw InvalidError(fmt::format("[{}] attribute: expected NAME=VALUE, got {}",
                                           function.name, beginning(setting)));
        const std::string name = setting.substr(0, equals);
        const catena_attr_spec& spec = spec_of(function, name);
        if (!values.emplace(name, parse(function, spec, setting.substr(equals + 1))).second)
            throw InvalidError(
                fmt::format("[{}] attribute {}: expected once, got twice", function.name, name));
    }
    return values;
}

PluginFunction bound(const catena_function& function, const Attributes& values) {
    std::vector<Attribute> list;
    for (const auto& [name, value] : values)
        std::visit([&, &key = name](const auto& v) { list.emplace_back(key, v); }, value);
    return PluginFunction(function.name, list);
}

// Returns the largest N of the names PREFIXN, or -1 if there is none.
std::int64_t last_number(const Arrays& given, std::string_view prefix) {
    std::int64_t last = -1;
    for (const auto& [name, array] : given) {
        if (!name.starts_with(prefix)) continue;
        std::int64_t number = -1;
        const char* const end = name.data() + name.size();
        const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, number);
        if (error != std::errc() || fmt::format("{}{}", prefix, number) != name) continue;
        last = std::max(last, number);
    }
    return last;
}

// Returns an array. Throws InvalidError if it is missing; `why` names the array that requires it.
const Array& need(const catena_function& f, const Arrays& given, const std::string& name,
                  std::string_view why = "") {
    const auto found = given.find(name);
    if (found != given.end()) return found->second;
    throw InvalidError(fmt::format("[{}] {}: expected in the file{}{}, got none", f.name, name,
                                   why.empty() ? "" : ", for there is ", why));
}

// Throws InvalidError if a name begins with the prefix and is none of the known ones.
void refuse_unknown(const catena_function& f, const Arrays& given, std::string_view prefix,
                    const std::vector<std::string>& known) {
    for (const auto& [name, array] : given) {
        if (!name.starts_with(prefix) || std::ranges::count(known, name) > 0) continue;
        throw InvalidError(
            fmt::format("[{}] arrays {}*: expected {}, got {}", f.name, prefix,
                        known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")), name));
    }
}

// A tensor of the call, and its name in files.
struct Named {
    std::string name;
    Variable variable;
    bool differentiable;
};

std::vector<std::string> names(const char* prefix, const std::vector<Named>& of) {
    std::vector<std::string> result;
    for (const Named& named : of)
        if (named.variable) result.push_back(prefix + named.name);
    return result;
}

std::vector<Named> inputs_of(const catena_function& f, const Arrays& given) {
    std::vector<Named> inputs;
    const auto add = [&](const std::string& name, const Array& array, const auto& port) {
        const bool differentiable =
            is_floating(array.dtype()) && !has(port.flags, CATENA_PORT_NON_DIFFERENTIABLE);
        inputs.push_back({name, Variable(array), differentiable});
    };
    for (const auto* port : std::span(f.inputs, f.n_inputs)) {
        const std::string name = port->name;
        const bool optional = has(port->flags, CATENA_PORT_OPTIONAL);
        if (has(port->flags, CATENA_PORT_VARIADIC)) {
            const auto last = last_number(given, "in_" + name);
            for (std::int64_t i = 0; i <= last || (i == 0 && !optional); ++i) {
                const std::string numbered = fmt::format("{}{}", name, i);
                const std::string why = last > i ? fmt::format("in_{}{}", name, last) : "";
                add(numbered, need(f, given, "in_" + numbered, why), *port);
            }
        } else if (optional && !given.contains("in_" + name)) {
            inputs.push_back({name, Variable(), false});
        } else {
            add(name, need(f, given, "in_" + name), *port);
        }
    }
    refuse_unknown(f, given, "in_", names("in_", inputs));
    return inputs;
}

std::vector<Named> outputs_of(const catena_function& f, std::vector<Variable> values) {
    std::vector<Named> outputs;
    for (std::uint32_t i = 0; i < f.n_outputs; ++i) {
        if (has(f.outputs[i]->flags, CATENA_PORT_HIDDEN)) continue;
        outputs.push_back({f.outputs[i]->name, values[i], values[i].requires_grad()});
    }
    return outputs;
}

std::vector<Named> differentiable(std::vector<Named> list) {
    std::erase_if(list, [](const Named& named) { return !named.differentiable; });
    return list;
}

// Returns an array as a leaf; empty if it is missing.
Variable leaf(const Arrays& given, const std::string& name) {
    const auto found = given.find(name);
    return found == given.end() ? Variable() : Variable(found->second);
}

std::vector<Variable> variables(const std::vector<Named>& list) {
    std::vector<Variable> result;
    for (const Named& named : list) result.push_back(named.variable);
    return result;
}

Array gradient_or_zeros(const Variable& gradient, const Variable& of) {
    return gradient ? gradient.data() : Array::zeros(of.shape(), of.dtype(), of.device());
}

// Returns the dtype of a state array in the kernels for parameters of dtype `param`.
Dtype dtype_of(const catena_function& f, const catena_port_spec& state, Dtype param) {
    if (state.type_var == std::string_view(f.inputs[0]->type_var)) return param;
    for (const KernelInfo& kernel : kernels_of(f.name))
        for (const auto& row : kernel.dtypes)
            if (row[0] == name(param) && row.size() == 2) return dtype_from_name(row[1]);
    return param;
}

}  // namespace

const catena_function& find_function(std::string_view name) {
    const std::string wanted = (name.find('.') == name.npos ? "catena." : "") + std::string(name);
    const auto names = function_names();
    // If there are no functions at all, the core throws an error that gives the reason.
    if (names.empty() || std::ranges::count(names, wanted) > 0) return function_descriptor(wanted);
    const std::string hint = function_suggestion(name);
    const PluginReport report = plugin_report();
    std::string hints = refusals(report, 3);
    if (!hints.empty()) hints += report.refused.size() > 1 ? "\n" : "; ";
    if (report.refused.size() > 1) hints = "\n" + hints;
    for (const KernelsWithoutFunction& k : report.kernels_without_function)
        if (k.function == wanted) hints += fmt::format("{} has kernels for it alone; ", k.plugin);
    throw PluginError(fmt::format("no plugin has the function {}; {}{}", wanted, hints,
                                  hint.empty() ? "see catena functions" : hint));
}

std::string infer(const std::string& function, const Settings& settings,
                  const std::vector<std::string>& inputs) {
    const catena_function& f = find_function(function);
    static const std::regex form(R"((\w+)=\(([\d, ]*?),?\)(?::(\w+))?)");
    Arrays given;
    for (const std::string& text : inputs) {
        std::smatch match;
        const bool fits = std::regex_match(text, match, form);
        const json shape = parse_json(fits ? "[" + match[2].str() + "]" : "");
        if (!fits || !shape.is_array() || !std::all_of(shape.begin(), shape.end(), is_integer))
            throw InvalidError(
                fmt::format("[{}] input: expected NAME=(2,3) or NAME=(2,3):DTYPE, got {}", f.name,
                            beginning(text)));
        const Dtype dtype = match[3].matched ? dtype_from_name(match[3].str()) : Dtype::float32;
        const auto extents = shape.get<std::vector<std::int64_t>>();
        given["in_" + match[1].str()] = Array::without_memory(Shape(extents), dtype);
    }
    std::vector<Array> arrays;
    for (const Named& input : inputs_of(f, given))
        arrays.push_back(input.variable ? input.variable.data() : Array());
    const std::vector<Array> results = bound(f, attributes_of(f, settings)).infer(arrays);
    std::string text;
    for (std::uint32_t i = 0; i < f.n_outputs; ++i)
        if (!has(f.outputs[i]->flags, CATENA_PORT_HIDDEN))
            text += fmt::format("    {} {} {}\n", f.outputs[i]->name, to_string(results[i].shape()),
                                name(results[i].dtype()));
    return text;
}

Arrays call(const std::string& function, const Settings& settings, const Arrays& given,
            Order order) {
    const catena_function& f = find_function(function);
    const PluginFunction called = bound(f, attributes_of(f, settings));
    const auto inputs = inputs_of(f, given);
    std::vector<const Variable*> pointers;
    for (const Named& input : inputs) pointers.push_back(&input.variable);
    const auto outputs = outputs_of(f, called(pointers));
    Arrays result;
    for (const Named& y : outputs) result["out_" + y.name] = y.variable.data();
    if (f.n_outputs == 0)  // an update changes its inputs in place
        for (const Named& input : inputs) result["out_" + input.name] = input.variable.data();
    const auto targets = differentiable(inputs), sources = differentiable(outputs);
    refuse_unknown(f, given, "gy_", names("gy_", sources));
    refuse_unknown(f, given, "ggx_", names("ggx_", targets));
    if (order == Order::forward) return result;

    if (sources.empty())
        throw InvalidError(
            fmt::format("[{}] gradient: expected an output that has one, got none", f.name));
    std::vector<Named> heads;
    std::vector<Variable> gy;
    for (const Named& y : sources) {
        Variable weight = leaf(given, "gy_" + y.name);
        const Array& value = y.variable.data();
        if (!weight && outputs.size() == 1 && value.size() == 1)
            weight = Variable(Array::ones(value.shape(), value.dtype(), value.device()));
        if (!weight) continue;
        heads.push_back(y);
        gy.push_back(weight);
    }
    if (heads.empty()) need(f, given, "gy_" + sources[0].name);
    std::vector<Variable> leaves = variables(targets);
    const bool twice = order == Order::double_backward;
    const auto gx = grad(variables(heads), leaves, gy, {}, {.enable_double_backprop = twice});
    std::vector<Variable> slopes, ggx;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        result["gx_" + targets[i].name] = gradient_or_zeros(gx[i], leaves[i]);
        const Variable weight = leaf(given, "ggx_" + targets[i].name);
        if (!gx[i] || !weight) continue;
        slopes.push_back(gx[i]);
        ggx.push_back(weight);
    }
    if (!twice) return result;

    if (slopes.empty()) need(f, given, "ggx_" + targets[0].name);
    std::vector<std::string> results = names("gg_", targets);
    for (const std::string& name : names("ggy_", heads)) results.push_back(name);
    leaves.insert(leaves.end(), gy.begin(), gy.end());
    const auto gg = grad(slopes, leaves, ggx);
    for (std::size_t i = 0; i < gg.size(); ++i)
        result[results[i]] = gradient_or_zeros(gg[i], leaves[i]);
    return result;
}

// Whether the rule uses the state: not if that is optional and its attribute is not set.
bool is_used(const catena_port_spec& state, const Attributes& attributes) {
    if (!has(state.flags, CATENA_PORT_OPTIONAL)) return true;
    const auto on = attributes.find(std::string(inspect::condition(state)));
    return on != attributes.end() && on->second == AttributeValue(true);
}

Arrays update(const std::string& optimizer, const Settings& settings, const Arrays& given) {
    const catena_function& f = find_function(optimizer + "_update");
    const std::int64_t last = std::max<std::int64_t>(last_number(given, "grad"), 1);
    std::vector<std::string> grads, states;
    for (std::int64_t t = 1; t <= last; ++t) {
        grads.push_back(fmt::format("grad{}", t));
        need(f, given, grads.back(), t < last ? fmt::format("grad{}", last) : "");
    }
    refuse_unknown(f, given, "grad", grads);
    Attributes attributes = attributes_of(f, settings);
    std::vector<Array> inputs{need(f, given, "param0").copy(), Array()};
    for (std::uint32_t i = 2; i < f.n_inputs; ++i) {
        states.push_back(fmt::format("state_{}", f.inputs[i]->name));
        const auto found = given.find(states.back());
        if (found != given.end()) inputs.push_back(found->second.copy());
        else if (!is_used(*f.inputs[i], attributes)) inputs.emplace_back();
        else
            inputs.push_back(Array::zeros(inputs[0].shape(),
                                          dtype_of(f, *f.inputs[i], inputs[0].dtype()),
                                          inputs[0].device()));
    }
    refuse_unknown(f, given, "state_", states);
    // If the function has an integer attribute t that is not set, t is the number of the step.
    bool counts = false;
    for (const auto* spec : std::span(f.attrs, f.n_attrs))
        counts |= spec->name == std::string_view("t") && spec->kind == CATENA_ATTR_INT;
    counts = counts && !attributes.contains("t");
    Arrays result;
    for (std::int64_t t = 1; t <= last; ++t) {
        inputs[1] = need(f, given, grads[static_cast<std::size_t>(t - 1)]);
        if (counts) attributes["t"] = t;
        bound(f, attributes).forward(inputs);
        result[fmt::format("param{}", t)] = inputs[0].copy();
    }
    for (std::size_t i = 0; i < states.size(); ++i)
        if (inputs[i + 2]) result[states[i]] = inputs[i + 2];
    return result;
}

}  // namespace catena::command
