// One walk through the graph: calls in order of falling rank, ties in order of arrival.
#pragma once

#include <catena/core/variable.hpp>

#include <optional>

namespace catena {

// The gradient of a result that the pass has not used yet.
struct Gradient {
    Array array;
    Variable variable;       // in its place where gradients have a graph
    Ref<VariableNode> held;  // the result, if the pass consumes the graph
};

// What a pass knows of a call: the gradients of its outputs, which it gathers until the call runs.
struct PassCall : Pooled {
    PassCall(GraphNode& call, BackwardPass& of);
    PassCall(PassCall&&) = delete;
    ~PassCall();

    const Ref<GraphNode> node;
    BackwardPass& pass;
    PassCall* const outer;  // of a pass that this one runs within
    const int rank;
    unsigned order = 0;  // of arrival
    bool leads = true;   // to an input of grad()
    std::size_t at = 0;  // in Paths::calls
    SmallVector<Gradient, 1> gy;
};

class BackwardPass {
public:
    struct Mode {
        bool retain_grad = false;
        bool on_variables = false;  // gradients get a graph of their own
        bool consume = false;       // what a call kept is freed as soon as it ran
    };
    explicit BackwardPass(Mode mode);
    BackwardPass(BackwardPass&&) = delete;

    // For grad(): only the calls between inputs and outputs run, and the gradients of the inputs
    // stay in the pass.
    void select(const std::vector<Variable>& outputs, const std::vector<Variable>& inputs);
    // After run(), with select().
    Variable gradient_of(const VariableNode& input) const;

    // Adds the gradient to node's, and schedules node's call. Arrays are for a pass without variables.
    void start(VariableNode& node, const Array& gradient);
    void start(VariableNode& node, const Variable& gradient);
    // Whether a gradient of node would be of use.
    bool useful(const VariableNode& node) const noexcept {
        return (node.creator && leads(*node.creator)) || find_wanted(node);
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
    // What has been added so far, or null.
    const Array* so_far(const VariableNode& input) const noexcept;
    // Adds the gradients of a call's inputs through its gradients().
    void compose(GraphNode& node, std::span<const Variable> gy);

private:
    struct Later {
        bool operator()(const std::unique_ptr<PassCall>& a,
                        const std::unique_ptr<PassCall>& b) const noexcept {
            return a->rank != b->rank ? a->rank < b->rank : a->order > b->order;
        }
    };
    // Between the inputs and outputs of grad().
    struct Wanted {
        const VariableNode* input;
        Gradient gradient;
    };
    struct Paths {
        SmallVector<Wanted, 4> wanted;  // sorted by input
        SmallVector<std::unique_ptr<PassCall>, 8> calls;
    };

    PassCall* call_of(const GraphNode& node) const noexcept {
        return node.in_pass_ && &node.in_pass_->pass == this ? node.in_pass_ : nullptr;
    }
    bool leads(const GraphNode& node) const noexcept {
        if (!paths_) return true;
        const PassCall* call = call_of(node);
        return call && call->leads;
    }
    const Gradient* find_wanted(const VariableNode& node) const noexcept;
    // In the call that made it, or in `wanted`; null for a leaf and for a call that nothing reached.
    const Gradient* find(const VariableNode& node, const PassCall* call) const noexcept {
        if (paths_) [[unlikely]] {
            if (const Gradient* wanted = find_wanted(node)) return wanted;
        }
        return call ? &call->gy[static_cast<std::size_t>(node.output_index)] : nullptr;
    }
    const Gradient* find(const VariableNode& node) const noexcept {
        return find(node, node.creator ? call_of(*node.creator) : nullptr);
    }
    Gradient* slot(VariableNode& node);
    PassCall& enqueue(GraphNode& node, PassCall* found);
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

[[noreturn]] void throw_released(std::string_view label, const std::string& input);
// Throws GraphError if one of the inputs must not be next to volatile variables.
void check_volatile(std::span<const Variable* const> inputs, std::string_view label,
                    const std::function<std::string(std::size_t)>& name_of);
// Throws GraphError if a consuming pass has been here.
void check_graph(const GraphNode& node);

// Throws unless grad has shape, dtype and device of the data. what: "[variable] grad".
void check_gradient(const VariableNode& node, const Array& grad, std::string_view what);

}  // namespace catena
