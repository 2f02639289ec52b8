// BackwardPass: one traversal of the graph. Calls run by descending rank, ties in the order of scheduling.
#pragma once

#include <catena/core/variable.hpp>

#include <map>
#include <optional>
#include <unordered_map>

namespace catena {

// The gradient of a call's output or of an input of grad(), summed up by the pass.
struct Gradient {
    Array array;
    Variable variable;       // instead of array if gradients have a graph
    Ref<VariableNode> held;  // keeps the output alive if the pass consumes the graph
};

// A call in a pass, with the gradients of its outputs, which accumulate until the call runs.
struct PassCall : Pooled {
    PassCall(GraphNode& call, BackwardPass& of);
    PassCall(PassCall&&) = delete;
    ~PassCall();

    const Ref<GraphNode> node;
    BackwardPass& pass;
    PassCall* outer;  // the call's entry in another pass that has not ended, or null
    const int rank;
    unsigned order = 0;  // of scheduling; 0: not scheduled
    bool leads = true;   // whether a path leads from it to an input of grad()
    std::size_t at = 0;  // index in Paths::calls
    SmallVector<Gradient, 1> gy;
};

class BackwardPass {
public:
    struct Mode {
        bool retain_grad = false;
        bool on_variables = false;  // gradients get a graph of their own
        bool consume = false;       // retained arrays of a call are freed once it has run
        double loss_scale = 0;      // see BackwardOptions
    };
    explicit BackwardPass(Mode mode);
    BackwardPass(BackwardPass&&) = delete;

    // Restricts the pass to calls between inputs and outputs, for grad(). It keeps the inputs' gradients.
    void select(const std::vector<Variable>& outputs, const std::vector<Variable>& inputs);
    // Returns the gradient of an input of select(). Call it after run().
    Variable gradient_of(const VariableNode& input) const;

    // Adds a gradient to that of node and schedules node's call.
    void start(VariableNode& node, const Variable& gradient);
    // Whether node's gradient leads to further calls, or is that of an input of grad().
    bool useful(const VariableNode& node) const noexcept {
        return (node.creator && leads(*node.creator)) || find_wanted(node);
    }
    // Lets run() call the hooks of leaves that the graph of these variables reaches.
    void watch(std::span<const Variable> outputs);
    // Runs the scheduled calls. consumed: the variable that a pass with Mode::consume started from.
    void run(VariableNode* consumed = nullptr);

    // Whether a call has to compute the gradient of this input. Leaves without handles need none.
    bool wants(const VariableNode* input) const noexcept {
        return input && input->requires_grad && (input->creator || input->has_users()) &&
               (!paths_ || useful(*input));
    }
    void add(VariableNode& input, Array gradient);
    void add(VariableNode& input, const Variable& gradient);
    // Returns the sum of the gradients added to input so far, or null.
    const Array* so_far(const VariableNode& input) const noexcept;
    // Called when a gradient was added to a leaf.
    void note_scale(VariableNode& input) const noexcept {
        if (!input.creator) input.loss_scale = static_cast<float>(loss_scale_);
    }
    // Computes the gradients of a call's inputs with gradients(), and adds them.
    void compose(GraphNode& node, std::span<const Variable> gy);

private:
    struct Later {
        bool operator()(const std::unique_ptr<PassCall>& a,
                        const std::unique_ptr<PassCall>& b) const noexcept {
            return a->rank != b->rank ? a->rank < b->rank : a->order > b->order;
        }
    };
    // Set by select(): the inputs of grad(), and the calls between inputs and outputs.
    struct Paths {
        std::map<const VariableNode*, Gradient, std::less<>,
                 PoolAllocator<std::pair<const VariableNode* const, Gradient>>>
            wanted;
        SmallVector<std::unique_ptr<PassCall>, 8> calls;
    };

    PassCall* call_of(const GraphNode& node) const noexcept {
        PassCall* call = node.in_pass_;
        while (call && &call->pass != this) call = call->outer;
        return call;
    }
    bool leads(const GraphNode& node) const noexcept {
        if (!paths_) return true;
        const PassCall* call = call_of(node);
        return call && call->leads;
    }
    // Whether backward() adds the gradient of this output to the output itself.
    bool is_leaf_output(const VariableNode& node) const noexcept {
        return !paths_ && !node.creator && node.requires_grad;
    }
    const Gradient* find_wanted(const VariableNode& node) const noexcept;
    // Returns node's gradient from `wanted` or its call's entry; null for other leaves and unreached calls.
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
    void step_arrays(GraphNode& node);
    void step_variables(GraphNode& node);
    void let_go(VariableNode* consumed);
    void note_uses(const GraphNode& node);

    const Mode mode_;
    const double loss_scale_;
    const bool debug_;
    std::optional<Paths> paths_;
    SmallVector<std::unique_ptr<PassCall>, 16> heap_;
    unsigned order_ = 0;
    std::unique_ptr<PassCall> running_;
    // Leaves with hooks, and the calls that have not run yet and may add to their gradients.
    struct Uses {
        Ref<VariableNode> leaf;
        std::size_t calls = 0;
    };
    std::unordered_map<const VariableNode*, Uses> uses_;
};

[[noreturn]] void throw_released(std::string_view label, const std::string& input);
// Throws GraphError if one of the inputs cannot be combined with volatile variables.
void check_volatile(std::span<const Variable* const> inputs, std::string_view label,
                    const std::function<std::string(std::size_t)>& name_of);
// Throws GraphError if an earlier pass has consumed the call.
void check_graph(const GraphNode& node);

// Throws unless grad has shape, dtype and device of the data. what begins the message: "[variable] grad".
void check_gradient(const VariableNode& node, const Array& grad, std::string_view what);

}  // namespace catena
