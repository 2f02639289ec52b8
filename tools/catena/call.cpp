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

std::vector<Named> inputs_of(const catena_function& f, const Arrays& given) {
    std::vector<Named> inputs;
    std::size_t used = 0;
    const auto take = [&](const std::string& name, const catena_port_spec& port) {
        const auto found = given.find("in_" + name);
        if (found == given.end()) return false;
        const bool differentiable =
            is_floating(found->second.dtype()) && !has(port.flags, CATENA_PORT_NON_DIFFERENTIABLE);
        inputs.push_back({name, Variable(found->second), differentiable});
        ++used;
        return true;
    };
    for (const auto* port : std::span(f.inputs, f.n_inputs)) {
        if (has(port->flags, CATENA_PORT_VARIADIC)) {
            for (int i = 0; take(fmt::format("{}{}", port->name, i), *port);) ++i;
        } else if (!take(port->name, *port)) {
            if (!has(port->flags, CATENA_PORT_OPTIONAL)) {
                throw InvalidError(
                    fmt::format("[{}] in_{}: expected in the file, got none", f.name, port->name));
            }
            inputs.push_back({port->name, Variable(), false});
        }
    }
    for (const auto& [name, array] : given) {
        if (!name.starts_with("in_")) continue;
        const auto known = [&](const Named& input) { return input.name == name.substr(3); };
        if (std::none_of(inputs.begin(), inputs.end(), known)) {
            throw InvalidError(
                fmt::format("[{}] inputs: expected those of the function, got {}", f.name, name));
        }
    }
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

// The arrays PREFIX_NAME for the differentiable ones, as leaves, or empty where there is none.
std::vector<Variable> weights(const char* prefix, const std::vector<Named>& of,
                              const Arrays& given) {
    std::vector<Variable> result;
    for (const Named& named : of) {
        const auto found = given.find(prefix + named.name);
        result.push_back(named.differentiable && found != given.end() ? Variable(found->second)
                                                                      : Variable());
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
    const catena_function& f = function_descriptor(full_name(function));
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
    if (order == Order::forward) return result;

    std::vector<Variable> gy = weights("gy_", outputs, given);
    if (outputs.size() == 1 && !gy[0] && outputs[0].differentiable &&
        outputs[0].variable.size() == 1) {
        const Array& y = outputs[0].variable.data();
        gy[0] = Variable(Array::ones(y.shape(), y.dtype(), y.device()));
    }
    const auto [heads, head_gradients] = present(variables(outputs), gy);
    if (heads.empty()) {
        if (std::none_of(outputs.begin(), outputs.end(), [](auto& y) { return y.differentiable; }))
            return result;  // nothing to differentiate
        throw InvalidError(
            fmt::format("[{}] gy_{}: expected in the file, got none", f.name, outputs[0].name));
    }
    std::vector<Named> targets;
    for (const Named& input : inputs) {
        if (input.differentiable) targets.push_back(input);
    }
    const auto x = variables(targets);
    const bool twice = order == Order::double_backward;
    const auto gx = grad(heads, x, head_gradients, {}, {.enable_double_backprop = twice});
    for (std::size_t i = 0; i < targets.size(); ++i) {
        result["gx_" + targets[i].name] = gradient_or_zeros(gx[i], x[i]);
    }
    if (!twice) return result;

    const auto [slopes, slope_gradients] = present(gx, weights("ggx_", targets, given));
    if (slopes.empty()) {
        throw InvalidError(fmt::format("[{}] ggx_{}: expected in the file, got none", f.name,
                                       targets.empty() ? "x" : targets[0].name));
    }
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
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (!gy[i]) continue;
        result["ggy_" + outputs[i].name] = gradient_or_zeros(gg[next], leaves[next]);
        ++next;
    }
    return result;
}

}  // namespace catena::command
