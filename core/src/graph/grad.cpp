// grad(): finds the calls between outputs and inputs, and walks them alone.
#include "graph/backward_pass.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/core/grad.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena {

void BackwardPass::select(const std::vector<Variable>& outputs,
                          const std::vector<Variable>& inputs) {
    Paths& paths = paths_.emplace();
    int least = inputs.empty() ? 0 : inputs.front().rank();  // no path goes below
    for (const Variable& input : inputs) {
        least = std::min(least, input.rank());
        paths.wanted.push_back({&input.node(), {}});
    }
    std::ranges::sort(paths.wanted, std::less(), &Wanted::input);
    const auto copies = std::ranges::unique(paths.wanted, {}, &Wanted::input);
    paths.wanted.resize(static_cast<std::size_t>(copies.begin() - paths.wanted.begin()));
    auto& calls = paths.calls;
    const auto see = [&](GraphNode* call) {
        if (!call || call->rank() <= least || call_of(*call)) return;
        check_graph(*call);
        calls.push_back(std::make_unique<PassCall>(*call, *this));
        calls.back()->leads = false;
    };
    for (const Variable& output : outputs) see(output.creator());
    for (std::size_t i = 0; i < calls.size(); ++i) {
        for (const Ref<VariableNode>& input : calls[i]->node->inputs())
            if (input && input->requires_grad) see(input->creator.get());
    }
    std::ranges::sort(calls, {}, [](const auto& call) { return call->rank; });
    for (std::size_t i = 0; i < calls.size(); ++i) {  // after those that made its inputs
        calls[i]->at = i;
        calls[i]->leads = std::ranges::any_of(
            calls[i]->node->inputs(),
            [&](const Ref<VariableNode>& x) { return x && x->requires_grad && useful(*x); });
    }
}

const Gradient* BackwardPass::find_wanted(const VariableNode& node) const noexcept {
    if (!paths_) return nullptr;
    const auto at = std::ranges::lower_bound(paths_->wanted, &node, std::less(), &Wanted::input);
    return at != paths_->wanted.end() && at->input == &node ? &at->gradient : nullptr;
}

Variable BackwardPass::gradient_of(const VariableNode& input) const {
    const Gradient& there = *find_wanted(input);
    if (there.variable || !there.array) return there.variable;
    return as_variable(there.array);
}

namespace {

void check(const char* what, const std::vector<Variable>& variables,
           const std::vector<Variable>& of) {
    if (!variables.empty() && variables.size() != of.size()) {
        throw InvalidError(fmt::format("[grad] {}: expected {} or none, got {}", what, of.size(),
                                       variables.size()));
    }
    for (std::size_t i = 0; i < variables.size(); ++i) {
        if (!variables[i]) continue;
        check_gradient(of[i].node(), variables[i].data(), fmt::format("[grad] {}[{}]", what, i));
    }
}

void check_present(const char* what, const std::vector<Variable>& variables) {
    const auto empty = std::ranges::find_if(variables, [](const auto& v) { return !v; });
    if (empty == variables.end()) return;
    throw InvalidError(fmt::format("[grad] {}[{}]: expected a variable, got an empty handle", what,
                                   empty - variables.begin()));
}

Variable ones_like(const Variable& y, std::size_t i) {
    if (!is_floating(y.dtype())) {
        throw DtypeError(fmt::format("[grad] outputs[{}]: expected a floating dtype, got {}", i,
                                     name(y.dtype())));
    }
    return as_variable(Array::ones(y.shape(), y.dtype(), y.device()));
}

}  // namespace

std::vector<Variable> grad(const std::vector<Variable>& outputs,
                           const std::vector<Variable>& inputs,
                           const std::vector<Variable>& grad_outputs,
                           const std::vector<Variable>& grad_inputs, GradOptions options) {
    check_present("outputs", outputs);
    check_present("inputs", inputs);
    check("grad_outputs", grad_outputs, outputs);
    check("grad_inputs", grad_inputs, inputs);
    BackwardPass pass(
        {.retain_grad = options.retain_grad, .on_variables = options.enable_double_backprop});
    pass.select(outputs, inputs);
    for (std::size_t i = 0; i < grad_inputs.size(); ++i) {
        if (grad_inputs[i]) pass.start(inputs[i].node(), grad_inputs[i]);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (!pass.useful(outputs[i].node())) continue;
        const bool given = !grad_outputs.empty() && grad_outputs[i];
        pass.start(outputs[i].node(), given ? grad_outputs[i] : ones_like(outputs[i], i));
    }
    pass.run();
    std::vector<Variable> results;
    results.reserve(inputs.size());
    for (const Variable& input : inputs) results.push_back(pass.gradient_of(input.node()));
    if (options.set_grad) {
        for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i].set_grad(results[i]);
    }
    return results;
}

}  // namespace catena
