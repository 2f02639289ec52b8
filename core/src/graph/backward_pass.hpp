// One walk through the graph: calls in order of falling rank, ties in order of arrival.
#pragma once

#include <catena/core/variable.hpp>

#include <string_view>

namespace catena {

class BackwardPass {
public:
    struct Mode {
        bool retain_grad = false;
        bool on_variables = false;  // gradients get a graph of their own
        bool consume = false;       // what a call kept is freed as soon as it ran
        bool selective = false;     // of grad(): routes say where to go, above this rank
        int above = 0;
    };
    explicit BackwardPass(Mode mode);
    // Whatever ends the pass early leaves no gradient on its way behind.
    ~BackwardPass();
    BackwardPass(const BackwardPass&) = delete;
    BackwardPass& operator=(const BackwardPass&) = delete;

    // Adds gradient to node's, and node's call to those that run().
    void start(VariableNode& node, const Array& gradient);
    void start(VariableNode& node, const Variable& gradient);
    // Whether a gradient of node would be of use.
    bool useful(const VariableNode& node) const noexcept {
        return node.route == Route::wanted || (node.creator && leads(*node.creator));
    }
    // consumed: what a consuming pass started from, if nobody else holds it.
    void run(VariableNode* consumed = nullptr);

private:
    struct Item {
        int rank;
        unsigned order;
        Ref<GraphNode> node;
        bool operator<(const Item& other) const {
            return rank != other.rank ? rank < other.rank : order > other.order;
        }
    };

    bool leads(const GraphNode& node) const noexcept;
    void push(GraphNode& node);
    void step(GraphNode& node);
    void step_as_called(GraphNode& node);
    void step_in_debug(GraphNode& node);
    void step_arrays(GraphNode& node);
    void step_variables(GraphNode& node);
    void follow(GraphNode& node);
    void let_go(GraphNode& node, VariableNode* consumed);

    const Mode mode_;
    const bool debug_;
    SmallVector<Item, 16> heap_;
    unsigned order_ = 0;
    Ref<GraphNode> running_;
};

// Throws GraphError if a consuming pass has been here.
void check_graph(const GraphNode& node);

// Forgets a gradient on its way.
void drop_pending(VariableNode& node) noexcept;

// Throws unless grad has shape, dtype and device of the data. what: "[variable] grad".
void check_gradient(const VariableNode& node, const Array& grad, std::string_view what);

// The gradient that a head starts with: the one that is set, or 1 for a single element.
void set_start(VariableNode& node);

}  // namespace catena
