// Nodes of the graph: edges, lifetime, accumulation of gradients.
#include "array/array_ops.hpp"
#include "device/named_config.hpp"
#include "device/plugin_source.hpp"
#include "dispatch/debug.hpp"
#include "dispatch/dispatch.hpp"
#include "dispatch/stack_trace.hpp"

#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/core/graph.hpp>
#include <catena/core/variable.hpp>

#include <fmt/format.h>

namespace catena {

VariableNode::VariableNode(Array array) : data(std::move(array)) {}

VariableNode::~VariableNode() {
    // A gradient may have a gradient, and so on: a loop, lest a long row recurse.
    for (Ref<VariableNode> next = std::move(grad_node); next;) {
        next->drop_user();
        Ref<VariableNode> after;
        if (next->references_.load(std::memory_order_acquire) == 1)
            after = std::move(next->grad_node);
        next = std::move(after);
    }
    if (creator && !creator->outputs_.empty()) {
        creator->outputs_[static_cast<std::size_t>(output_index)] = nullptr;
    }
}

int VariableNode::rank() const noexcept { return creator ? creator->rank() : 0; }

void VariableNode::write_grad(Array gradient) {
    if (!grad_in_place || !grad) grad = std::move(gradient);
    else if (grad.body() != gradient.body()) grad.copy_from(gradient);
}

// The last handle of the user is gone: keep the shape, which backward needs, and free the rest.
void VariableNode::forget() noexcept {
    if (references_.load(std::memory_order_acquire) == 1) return;  // the destructor does it all
    users_.store(0, std::memory_order_relaxed);  // the last user did not count itself down
    if (data) make_shell(data);
    grad = Array();
    set_grad_node({});
}

GraphNode::~GraphNode() = default;

std::vector<Array> GraphNode::forward(std::span<const Array>) const {
    throw UnsupportedError(
        fmt::format("[{}] forward: expected a call that can be computed anew, got one of a class "
                    "without forward()",
                    label()));
}

// A long chain must not recurse: a node that dies inside another's death waits in a list, linked
// through the nodes themselves so that it works as late as the destructors of static objects.
void GraphNode::destroy(GraphNode* node) noexcept {
    static thread_local constinit GraphNode* waiting = nullptr;
    static thread_local constinit bool busy = false;
    node->next_dead_ = waiting;
    waiting = node;
    if (busy) return;
    busy = true;
    while (waiting) {
        GraphNode* next = waiting;
        waiting = next->next_dead_;
        delete next;
    }
    busy = false;
}

std::string GraphNode::input_name(std::size_t i) const { return fmt::format("input {}", i); }
std::string GraphNode::output_name(std::size_t i) const { return fmt::format("output {}", i); }

std::string GraphNode::created_at() const { return trace_ ? to_string(*trace_) : std::string(); }

bool GraphNode::record(std::span<const Variable* const> inputs, std::span<const Variable> outputs) {
    std::size_t n = 0;
    std::size_t n_volatile = 0;
    bool wanted = false;
    bool opposed = false;
    for (const Variable* input : inputs) {
        if (!input || !*input) continue;
        ++n;
        if (input->is_volatile()) ++n_volatile;
        opposed = opposed || input->node().opposes_volatile();
        wanted = wanted || input->requires_grad();
    }
    if (n_volatile != 0 && opposed) {
        throw GraphError(
            fmt::format("[{}] inputs: expected volatile variables or others, got both", label()));
    }
    if (config().debug) {
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            check_numbers(outputs[i].data(), label(), "forward: " + output_name(i), stack_trace());
        }
    }
    const bool graph = (wanted || n == 0) && n_volatile == 0 && config().enable_backprop;
    for (const Variable& output : outputs) {
        output.set_volatile(n_volatile != 0);
        output.set_requires_grad(graph && output.requires_grad());
        output.node().volatile_result = n_volatile != 0;
    }
    if (graph) connect(inputs, outputs, config());
    return graph;
}

void GraphNode::connect(std::span<const Variable* const> inputs, std::span<const Variable> outputs,
                        const Config& now) {
    if (!now.named.empty()) [[unlikely]]
        named_ = keep_named(now);
    if (now.debug) trace_ = std::make_unique<std::vector<void*>>(stack_trace());
    inputs_.reserve(inputs.size());
    outputs_.reserve(outputs.size());
    // Nothing below throws: a variable that dies clears its place in outputs_, which has to exist.
    for (const Variable* input : inputs) {
        if (!input || !*input) {
            inputs_.push_back({});
            continue;
        }
        inputs_.push_back(input->node_ref());
        rank_ = std::max(rank_, input->rank());
    }
    ++rank_;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        VariableNode& node = outputs[i].node();
        node.creator = Ref<GraphNode>(this);
        node.output_index = static_cast<std::int32_t>(i);
        outputs_.push_back(&node);
    }
}

void GraphNode::unchain() {
    const Ref<GraphNode> keep(this);
    for (VariableNode* output : outputs_) {
        if (!output) continue;
        output->creator.reset();
        output->unchained = true;
    }
    outputs_.clear();
    inputs_.clear();
}

namespace {

// The sum as a call of the function that plugins declared as the addition.
Variable sum(const Variable& a, const Variable& b) {
    FunctionEntry* addition = Registry::get().addition();
    if (!addition) {
        throw PluginError(
            with_plugin_report("[backward] gradients meet: expected a plugin with an addition "
                               "(CATENA_FUNCTION_ADDITION), got none"));
    }
    const Variable* const inputs[2] = {&a, &b};
    CallResult result;
    call_function(*addition, *addition->defaults, inputs, result);
    return std::move(result.y[0]);
}

}  // namespace

void accumulate(VariableNode& node, Array gradient) {
    const bool leaf = !node.gathers();
    Array& there = leaf ? node.grad : node.pending;
    if (!there) {
        // A leaf's gradient is written in place later on: it must not share memory.
        there = leaf && !unshared(*gradient.body()) ? gradient.copy() : std::move(gradient);
        return;
    }
    const no_backprop_mode scope;
    const Array total = sum(as_variable(there), as_variable(gradient)).data();
    if (leaf && (node.grad_in_place || there.body()->exclusive())) {
        there.copy_from(total);
    } else {  // the old one may be part of a graph, or on its way elsewhere too
        there = total;
    }
    if (leaf) node.set_grad_node({});
}

void accumulate(VariableNode& node, const Variable& gradient) {
    const bool leaf = !node.gathers();
    Ref<VariableNode>& there = leaf ? node.grad_node : node.pending_node;
    if (leaf && node.grad && !node.grad_node) node.set_grad_node(as_variable(node.grad).node_ref());
    const Variable total = there ? sum(Variable(there), gradient) : gradient;
    total.node().add_user();  // the node is a user of its gradient: the data must stay
    if (there) there->drop_user();
    there = total.node_ref();
    if (leaf) node.write_grad(there->data);
}

}  // namespace catena
