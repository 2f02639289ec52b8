// One walk through the graph: calls in order of falling rank, ties in order of arrival.
#pragma once

#include <catena/core/variable.hpp>

#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace catena {

// The gradient of a result on its way.
struct Gradient {
    Array array;
    Variable variable;  // in its place where gradients have a graph
};

// A call that a pass will run: gradients of its outputs, which the pass gathers.
struct PassCall : Pooled {
    PassCall(GraphNode& call, BackwardPass& of, unsigned arrival);
    PassCall(const PassCall&) = delete;
    PassCall& operator=(const PassCall&) = delete;
    ~PassCall();

    const Ref<GraphNode> node;
    BackwardPass& pass;
    PassCall* const outer;  // of a pass that this one runs within
    const unsigned order;
    SmallVector<Gradient, 1> gy;
    SmallVector<Ref<VariableNode>, 1> held;  // its outputs, if the pass consumes the graph
};

class BackwardPass {
public:
    struct Mode {
        bool retain_grad = false;
        bool on_variables = false;  // gradients get a graph of their own
        bool consume = false;       // what a call kept is freed as soon as it ran
    };
    explicit BackwardPass(Mode mode);
    BackwardPass(const BackwardPass&) = delete;
    BackwardPass& operator=(const BackwardPass&) = delete;

    // For grad(): only the calls between inputs and outputs run, and the gradients of the inputs
    // stay in the pass.
    void select(const std::vector<Variable>& outputs, const std::vector<Variable>& inputs);
    // After run(), with select().
    Variable gradient_of(const VariableNode& input) const;

    // Adds gradient to node's, and node's call to those that run().
    void start(VariableNode& node, const Variable& gradient);
    // Whether a gradient of node would be of use.
    bool useful(const VariableNode& node) const noexcept {
        return (node.creator && leads(*node.creator)) || (paths_ && paths_->wanted.contains(&node));
    }
    // consumed: what a consuming pass started from, if nobody else holds it.
    void run(VariableNode* consumed = nullptr);

    // For the calls that run. A leaf that nobody holds wants no gradient.
    bool wants(const VariableNode* input) const noexcept {
        return input && input->requires_grad && (input->creator || input->has_users()) &&
               (!paths_ || useful(*input));
    }
    void add(VariableNode& input, Array gradient);
    void add(VariableNode& input, const Variable& gradient);
    // What has been added so far, or none.
    const Array& so_far(const VariableNode& input) const noexcept;
    // Adds the gradients of a call's inputs through its gradients().
    void compose(GraphNode& node, std::span<const Variable> gy);

private:
    struct Later {
        bool operator()(const std::unique_ptr<PassCall>& a,
                        const std::unique_ptr<PassCall>& b) const noexcept {
            return a->node->rank() != b->node->rank() ? a->node->rank() < b->node->rank()
                                                      : a->order > b->order;
        }
    };
    // Between the inputs and outputs of grad().
    struct Paths {
        std::unordered_map<const VariableNode*, Gradient> wanted;  // gradients of the inputs
        std::unordered_set<const GraphNode*> calls;
    };

    bool leads(const GraphNode& node) const noexcept {
        return !paths_ || paths_->calls.contains(&node);
    }
    const Gradient* find(const VariableNode& node) const noexcept;
    Gradient* slot(VariableNode& node);
    void step(GraphNode& node);
    void step_as_called(GraphNode& node);
    void step_in_debug(GraphNode& node);
    void step_arrays(GraphNode& node);
    void step_variables(GraphNode& node);
    void let_go(VariableNode* consumed);

    const Mode mode_;
    const bool debug_;
    std::optional<Paths> paths_;
    SmallVector<std::unique_ptr<PassCall>, 16> heap_;
    unsigned order_ = 0;
    std::unique_ptr<PassCall> running_;
};

// Throws GraphError if a consuming pass has been here.
void check_graph(const GraphNode& node);

// Throws unless grad has shape, dtype and device of the data. what: "[variable] grad".
void check_gradient(const VariableNode& node, const Array& grad, std::string_view what);

}  // namespace catena
