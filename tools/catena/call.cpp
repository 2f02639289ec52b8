// catena call: one function on arrays of a file, with gradients of first and second order.
#include "commands.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace catena::command {
namespace {

bool has(std::uint32_t flags, std::uint32_t flag) { return (flags & flag) != 0; }

// A tensor of the call, by the name it has in files.
struct Named {
    std::string name;
    Variable variable;
    bool differentiable;
};

std::vector<std::string> names(const char* prefix, const std::vector<Named>& of) {
    std::vector<std::string> result;
    for (const Named& named : of) {
        if (named.variable) result.push_back(prefix + named.name);
    }
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

// The arrays PREFIX_NAME as leaves, or empty where there is none.
std::vector<Variable> weights(const char* prefix, const std::vector<Named>& of,
                              const Arrays& given) {
    std::vector<Variable> result;
    for (const Named& named : of) {
        const auto found = given.find(prefix + named.name);
        result.push_back(found == given.end() ? Variable() : Variable(found->second));
    }
    return result;
}

// Two lists of the same order without the entries of which the second is empty.
std::pair<std::vector<Variable>, std::vector<Variable>> present(const std::vector<Variable>& what,
                                                                const std::vector<Variable>& with) {
    std::pair<std::vector<Variable>, std::vector<Variable>> result;
    for (std::size_t i = 0; i < what.size(); ++i) {
        if (!what[i] || !with[i]) continue;
        result.first.push_back(what[i]);
        result.second.push_back(with[i]);
    }
    return result;
}

std::vector<Variable> variables(const std::vector<Named>& list) {
    std::vector<Variable> result;
    for (const Named& named : list) result.push_back(named.variable);
    return result;
}

Array gradient_or_zeros(const Variable& gradient, const Variable& of) {
    return gradient ? gradient.data() : Array::zeros(of.shape(), of.dtype(), of.device());
}

}  // namespace

Arrays call(const std::string& function, const Settings& settings, const Arrays& given,
            Order order) {
    const catena_function& f = find_function(function);
    const PluginFunction bound = Attributes(f, settings).bind();
    const auto inputs = inputs_of(f, given);
    std::vector<const Variable*> pointers;
    for (const Named& input : inputs) pointers.push_back(&input.variable);
    const auto outputs = outputs_of(f, bound(pointers));
    Arrays result;
    for (const Named& y : outputs) result["out_" + y.name] = y.variable.data();
    for (std::size_t i = 0; i < inputs.size(); ++i) {  // what an update changed in place
        if (f.n_outputs == 0) result["out_" + inputs[i].name] = inputs[i].variable.data();
    }
    const auto targets = differentiable(inputs), sources = differentiable(outputs);
    refuse_unknown(f, given, "gy_", names("gy_", sources));
    refuse_unknown(f, given, "ggx_", names("ggx_", targets));
    if (order == Order::forward) return result;

    if (sources.empty()) {
        throw InvalidError(
            fmt::format("[{}] gradient: expected an output that has one, got none", f.name));
    }
    std::vector<Variable> gy = weights("gy_", sources, given);
    if (outputs.size() == 1 && !gy[0] && outputs[0].variable.size() == 1) {
        const Array& y = outputs[0].variable.data();
        gy[0] = Variable(Array::ones(y.shape(), y.dtype(), y.device()));
    }
    const auto [heads, head_gradients] = present(variables(sources), gy);
    if (heads.empty()) need(f, given, "gy_" + sources[0].name);
    const auto x = variables(targets);
    const bool twice = order == Order::double_backward;
    const auto gx = grad(heads, x, head_gradients, {}, {.enable_double_backprop = twice});
    for (std::size_t i = 0; i < targets.size(); ++i) {
        result["gx_" + targets[i].name] = gradient_or_zeros(gx[i], x[i]);
    }
    if (!twice) return result;

    const auto [slopes, slope_gradients] = present(gx, weights("ggx_", targets, given));
    if (slopes.empty()) need(f, given, "ggx_" + targets[0].name);
    std::vector<Variable> leaves = x;
    for (const Variable& g : gy) {
        if (g) leaves.push_back(g);
    }
    const auto gg = grad(slopes, leaves, slope_gradients);
    std::size_t next = 0;
    for (const Named& target : targets) {
        result["gg_" + target.name] = gradient_or_zeros(gg[next], leaves[next]);
        ++next;
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
        if (!gy[i]) continue;
        result["ggy_" + sources[i].name] = gradient_or_zeros(gg[next], leaves[next]);
        ++next;
    }
    return result;
}

}  // namespace catena::command
