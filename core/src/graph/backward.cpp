// Backpropagation: from one head or several into every leaf.
#include "array/array_ops.hpp"
#include "device/named_config.hpp"
#include "graph/backward_pass.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/core/grad.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena {
void check_graph(const GraphNode& node) {
    if (!node.outputs().empty()) return;
    throw GraphError(fmt::format(
        "[{}] backward: expected its graph, got one that an earlier backward() consumed",
        node.label()));
}

PassCall::PassCall(GraphNode& call, BackwardPass& of)
    : node(&call),
      pass(of),
      outer(std::exchange(call.in_pass_, this)),
      rank(call.rank()),
      gy(call.outputs_.size()) {}

PassCall::~PassCall() { node->in_pass_ = outer; }

BackwardPass::BackwardPass(Mode mode) : mode_(mode), debug_(config().debug) {}

// found: that of the call, if select() has seen it.
PassCall& BackwardPass::enqueue(GraphNode& node, PassCall* found) {
    check_graph(node);
    if (found) heap_.push_back(std::move(paths_->calls[found->at]));
    else heap_.push_back(std::make_unique<PassCall>(node, *this));
    PassCall& call = *heap_.back();
    call.order = ++order_;
    std::push_heap(heap_.begin(), heap_.end(), Later());
    return call;
}

// Where its gradient gathers, or null for a leaf's, which does so in the leaf. The call that made it
// will run.
Gradient* BackwardPass::slot(VariableNode& node) {
    PassCall* call = nullptr;
    if (GraphNode* const creator = node.creator.get()) {
        call = call_of(*creator);
        if ((!call || !call->order) && leads(*creator)) call = &enqueue(*creator, call);
    }
    auto* const there = const_cast<Gradient*>(find(node, call));
    if (there && mode_.consume) there->held = Ref<VariableNode>(&node);  // outlives what uses it
    return there;
}

const Array* BackwardPass::so_far(const VariableNode& input) const noexcept {
    const Gradient* const there = find(input);
    const Array& array =
        there ? there->variable ? there->variable.data() : there->array : input.grad;
    return array && (there || !input.creator) ? &array : nullptr;
}

void BackwardPass::start(VariableNode& node, const Array& gradient) {
    if (!useful(node)) return;
    if (debug_) diagnostics().check(gradient, "backward", "grad of the start", {});
    add(node, gradient);
}

void BackwardPass::start(VariableNode& node, const Variable& gradient) {
    if (!mode_.on_variables) return start(node, gradient.data());
    if (!useful(node)) return;
    if (debug_) diagnostics().check(gradient.data(), "backward", "grad of the start", {});
    const force_backprop_mode scope;
    add(node, gradient);
}

void BackwardPass::run(VariableNode* consumed) {
    while (!heap_.empty()) {
        std::pop_heap(heap_.begin(), heap_.end(), Later());
        running_ = std::move(heap_.back());
        heap_.pop_back();
        GraphNode& node = *running_->node;
        if (node.named_) [[unlikely]]
            step_as_called(node);
        else step(node);
        if (mode_.consume) let_go(consumed);
        running_.reset();
    }
}

void BackwardPass::step(GraphNode& node) {
    if (debug_) [[unlikely]]
        step_in_debug(node);
    else if (mode_.on_variables) step_variables(node);
    else step_arrays(node);
}

// With the named settings that the call was made with.
[[gnu::cold]] void BackwardPass::step_as_called(GraphNode& node) {
    const using_kept_named scope(*node.named_);
    step(node);
}

[[gnu::cold]] void BackwardPass::step_in_debug(GraphNode& node) {
    std::span<void* const> trace;
    if (node.trace_) trace = *node.trace_;
    const auto gradient = [&](std::size_t i) {
        const VariableNode* x = node.inputs_[i].get();
        const Array* const there = wants(x) ? so_far(*x) : nullptr;
        return there ? *there : Array();
    };
    diagnostics().backward(node, trace, gradient, [&] {
        if (mode_.on_variables) step_variables(node);
        else step_arrays(node);
    });
}

// With its results goes the last reference of a call, unless somebody else has one.
void BackwardPass::let_go(VariableNode* consumed) {
    GraphNode& node = *running_->node;
    for (Gradient& g : running_->gy) g.held.reset();
    if (!consumed || consumed->creator.get() != &node || !consumed->unique()) return;
    if (node.references_.load(std::memory_order_acquire) != 2) return;  // running_ and consumed
    node.unchain();
    consumed->creator = running_->node;  // an empty call: another backward() finds it and says so
}

void BackwardPass::step_arrays(GraphNode& node) {
    SmallVector<Array, 2> gy;
    for (std::size_t i = 0; i < node.outputs_.size(); ++i) {
        VariableNode* const output = node.outputs_[i];
        const Gradient* const kept = output ? find_wanted(*output) : nullptr;
        if (kept) gy.push_back(kept->array);
        else gy.push_back(std::move(running_->gy[i].array));
        const Array& g = gy.back();
        if (mode_.retain_grad && g && output && output->has_users() &&
            g.body() != output->grad.body()) {
            output->set_grad_node({});
            output->grad = g;
        }
    }
    node.backward(std::span<const Array>(gy.data(), gy.size()), *this);
}

void BackwardPass::step_variables(GraphNode& node) {
    SmallVector<Variable, 2> gy;
    for (std::size_t i = 0; i < node.outputs_.size(); ++i) {
        VariableNode* const output = node.outputs_[i];
        const Gradient* there = output ? find(*output) : nullptr;
        gy.push_back(there ? there->variable : Variable());
        running_->gy[i].variable = Variable();
        if (gy.back() && mode_.retain_grad && output->has_users()) {
            output->set_grad_node(gy.back().node_ref());
            output->grad = gy.back().data();
        }
    }
    const force_backprop_mode scope;
    compose(node, std::span<const Variable>(gy.data(), gy.size()));
}

void BackwardPass::compose(GraphNode& node, std::span<const Variable> gy) {
    node.check_retained();
    const std::size_t n = node.inputs_.size();
    SmallVector<bool, 16> wanted;
    bool any = n == 0;
    for (const Ref<VariableNode>& input : node.inputs_) {
        wanted.push_back(wants(input.get()));
        any = any || wanted.back();
    }
    if (!any) return;
    SmallVector<Variable, 4> gx(n);
    node.gradients(gy, {wanted.data(), n}, {gx.data(), n});
    node.check_retained();
    for (std::size_t i = 0; i < n; ++i) {
        if (!gx[i] || !wants(node.inputs_[i].get())) continue;
        VariableNode& input = *node.inputs_[i];
        if (!same_kind(*gx[i].data().body(), *input.data.body())) {
            check_gradient(
                input, gx[i].data(),
                fmt::format("[{}] backward: gradient of {}", node.label(), node.input_name(i)));
        }
        if (mode_.on_variables) {
            add(input, gx[i]);
        } else {
            Array gradient = gx[i].data();
            gx[i] = Variable();  // who holds a gradient alone may write into it
            add(input, std::move(gradient));
        }
    }
}

namespace {

// The gradient that a head starts with: the one that is set, or 1 for a single element.
void set_start(VariableNode& node) {
    if (node.grad) return;
    const Variable y{Ref<VariableNode>(&node)};
    if (y.size() != 1) {
        throw GraphError(
            fmt::format("[backward] grad of the start: expected one to be set for shape {}, got "
                        "none (only a variable of one element starts with 1)",
                        to_string(y.shape())));
    }
    if (!is_floating(y.dtype())) {
        throw DtypeError(
            fmt::format("[backward] start: expected a floating dtype, got {}", name(y.dtype())));
    }
    node.grad = Array::ones(y.shape(), y.dtype(), y.device());
}

// Whether there is a graph to go through. A leaf has none and needs none.
bool has_graph(const VariableNode& start) {
    if (!start.creator && start.unchained) {
        throw GraphError(
            "[backward] start: expected a variable with its graph, got one whose graph "
            "unchain_backward() has freed");
    }
    return static_cast<bool>(start.creator);
}

void run_from(const Variable& y, BackwardPass::Mode mode) {
    VariableNode& start = y.node();
    if (!has_graph(start)) return;
    set_start(start);
    BackwardPass pass(mode);
    if (mode.on_variables) pass.start(start, y.grad_variable());
    else pass.start(start, start.grad);
    pass.run(mode.consume ? &start : nullptr);
}

}  // namespace

void Variable::backward(bool retain_grad, bool enable_double_backprop) const& {
    run_from(*this, {.retain_grad = retain_grad, .on_variables = enable_double_backprop});
}

// A gradient of higher order goes through the graph once more: there is nothing to free.
void Variable::backward(bool retain_grad, bool enable_double_backprop) && {
    run_from(*this, {.retain_grad = retain_grad,
                     .on_variables = enable_double_backprop,
                     .consume = !enable_double_backprop});
}

void backward(const std::vector<Variable>& outputs, const std::vector<Variable>& grad_outputs,
              BackwardOptions options) {
    if (!grad_outputs.empty() && grad_outputs.size() != outputs.size()) {
        throw InvalidError(fmt::format("[backward] grad_outputs: expected {} or none, got {}",
                                       outputs.size(), grad_outputs.size()));
    }
    BackwardPass pass(
        {.retain_grad = options.retain_grad, .on_variables = options.enable_double_backprop});
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        VariableNode& start = outputs[i].node();
        Variable gradient = grad_outputs.empty() ? Variable() : grad_outputs[i];
        if (gradient) {
            check_gradient(start, gradient.data(), fmt::format("[backward] grad_outputs[{}]", i));
        }
        if (!has_graph(start)) continue;
        if (!gradient) {
            set_start(start);
            gradient = outputs[i].grad_variable();
        }
        pass.start(start, gradient);
    }
    pass.run();
}

}  // namespace catena
