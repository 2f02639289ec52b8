// Backpropagation: from one head or several into every leaf.
#include "array/array_ops.hpp"
#include "device/named_config.hpp"
#include "dispatch/debug.hpp"
#include "graph/backward_pass.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/core/grad.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace catena {
namespace {

void release(VariableNode& node) noexcept {
    if (std::exchange(node.held, false)) node.release();
}

}  // namespace

void drop_pending(VariableNode& node) noexcept {
    node.pending = Array();
    if (node.pending_node) node.pending_node->drop_user();
    node.pending_node.reset();
}

void check_graph(const GraphNode& node) {
    if (!node.outputs().empty()) return;
    throw GraphError(fmt::format(
        "[{}] backward: expected its graph, got one that an earlier backward() consumed",
        node.label()));
}

BackwardPass::BackwardPass(Mode mode) : mode_(mode), debug_(config().debug) {}

BackwardPass::~BackwardPass() {
    const auto drop = [](VariableNode* node) {
        if (!node) return;
        drop_pending(*node);
        release(*node);
    };
    for (const Item& item : heap_) {
        item.node->queued_ = false;
        for (std::size_t i = 0; i < item.node->outputs_.size(); ++i) drop(item.node->outputs_[i]);
    }
    if (!running_) return;
    for (const Ref<VariableNode>& input : running_->inputs_) drop(input.get());
    for (std::size_t i = 0; i < running_->outputs_.size(); ++i) {
        drop(running_->outputs_[i]);
    }
}

bool BackwardPass::leads(const GraphNode& node) const noexcept {
    if (!mode_.selective) return true;
    if (node.rank() <= mode_.above) return false;
    for (std::size_t i = 0; i < node.inputs_.size(); ++i) {
        if (node.wants(i)) return true;
    }
    return false;
}

void BackwardPass::push(GraphNode& node) {
    check_graph(node);
    heap_.push_back({node.rank(), order_++, Ref<GraphNode>(&node)});
    node.queued_ = true;
    std::push_heap(heap_.begin(), heap_.end());
}

void BackwardPass::start(VariableNode& node, const Array& gradient) {
    if (!useful(node)) return;
    if (debug_) check_numbers(gradient, "backward", "grad of the start", {});
    if (node.creator && !node.creator->queued_ && leads(*node.creator)) push(*node.creator);
    accumulate(node, gradient);
}

void BackwardPass::start(VariableNode& node, const Variable& gradient) {
    if (!useful(node)) return;
    if (debug_) check_numbers(gradient.data(), "backward", "grad of the start", {});
    if (node.creator && !node.creator->queued_ && leads(*node.creator)) push(*node.creator);
    const force_backprop_mode scope;
    accumulate(node, gradient);
}

void BackwardPass::run(VariableNode* consumed) {
    while (!heap_.empty()) {
        std::pop_heap(heap_.begin(), heap_.end());
        running_ = std::move(heap_.back().node);
        heap_.pop_back();
        GraphNode& node = *running_;
        node.queued_ = false;
        if (node.named_) [[unlikely]]
            step_as_called(node);
        else step(node);
        follow(node);
        if (mode_.consume) let_go(node, consumed);
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
    const auto check = [&](const char* what) {
        for (std::size_t i = 0; i < node.inputs_.size(); ++i) {
            if (!node.wants(i)) continue;
            const VariableNode& x = *node.inputs_[i];
            const VariableNode* on = (x.gathers() ? x.pending_node : x.grad_node).get();
            const Array& there = on ? on->data : x.gathers() ? x.pending : x.grad;
            check_numbers(there, node.label(), fmt::format(fmt::runtime(what), node.input_name(i)),
                          trace);
        }
    };
    check("backward: gradient of {} before it is added to");
    try {
        if (mode_.on_variables) step_variables(node);
        else step_arrays(node);
    } catch (const NanError& error) {  // in a function that the gradient is composed of
        throw NanError(
            fmt::format("{}\nin the backward of {}{}", error.what(), node.label(), place(trace)));
    }
    check("backward: gradient of {}");
}

// The calls that made what just got a gradient come next.
void BackwardPass::follow(GraphNode& node) {
    for (const Ref<VariableNode>& input : node.inputs_) {
        if (!input || !input->creator || !(input->pending || input->pending_node)) continue;
        if (mode_.consume && !input->held) {  // it must outlive the call that uses it
            input->retain();
            input->held = true;
        }
        if (!input->creator->queued_ && leads(*input->creator)) push(*input->creator);
    }
}

// With its results goes the last reference of a call, unless somebody else has one.
void BackwardPass::let_go(GraphNode& node, VariableNode* consumed) {
    for (std::size_t i = 0; i < node.outputs_.size(); ++i) {
        if (VariableNode* output = node.outputs_[i]) release(*output);
    }
    if (!consumed || consumed->creator.get() != &node || !consumed->unique()) return;
    if (node.references_.load(std::memory_order_acquire) != 2) return;  // running_ and consumed
    node.unchain();
    consumed->creator = running_;  // an empty call: another backward() finds it and says so
}

void BackwardPass::step_arrays(GraphNode& node) {
    SmallVector<Array, 2> gy;
    for (VariableNode* output : node.outputs_) {
        if (!output) {
            gy.push_back({});
            continue;
        }
        if (output->route == Route::wanted) gy.push_back(output->pending);
        else gy.push_back(std::move(output->pending));
        const Array& g = gy.back();
        if (mode_.retain_grad && g && output->has_users() && g.body() != output->grad.body()) {
            output->set_grad_node({});
            output->grad = g;
        }
    }
    node.backward(std::span<const Array>(gy.data(), gy.size()));
}

void BackwardPass::step_variables(GraphNode& node) {
    SmallVector<Variable, 2> gy;
    for (VariableNode* output : node.outputs_) {
        gy.push_back({});
        if (!output || !output->pending_node) continue;
        gy.back() = Variable(output->pending_node);
        if (output->route != Route::wanted) drop_pending(*output);
        if (mode_.retain_grad && output->has_users()) {
            output->set_grad_node(gy.back().node_ref());
            output->grad = gy.back().data();
        }
    }
    node.backward(std::span<const Variable>(gy.data(), gy.size()));
}

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

namespace {

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
        if (options.enable_double_backprop) pass.start(start, gradient);
        else pass.start(start, gradient.data());
    }
    pass.run();
}

}  // namespace catena
