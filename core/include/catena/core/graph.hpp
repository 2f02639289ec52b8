// The graph of variables and calls. Users access it through Variable.
#pragma once

#include <catena/core/array.hpp>

namespace catena {

class BackwardPass;
struct PassCall;
class GraphNode;
class Variable;
struct Config;

// A call of a function that is a composition. The calls within it refer to it.
struct CallGroup : Pooled {
    CallGroup(std::string_view of, const CallGroup* within) : name(of), outer(within) {}
    void retain() const noexcept { references_.add(); }
    void release() const noexcept {
        if (references_.drop()) delete this;
    }

    const std::string_view name;       // the function's
    const Ref<const CallGroup> outer;  // the composition that called it, or null

private:
    mutable RefCount references_{0};
};
// The composition that this thread runs, or whose gradient it computes; null if there is none.
const CallGroup* running_group() noexcept;

// One variable, as the graph sees it. It outlives the user's handles as long as the graph needs it;
// the data does not, unless a call retained it.
class VariableNode : public Pooled {
public:
    explicit VariableNode(Array array);
    ~VariableNode();

    void retain() noexcept { references_.add(); }
    void release() noexcept {
        if (references_.drop()) delete this;
    }
    // Handles of the user, counted separately: when the last is gone, data and gradient are freed.
    void add_user() noexcept { users_.add(); }
    void drop_user() noexcept {
        if (users_.drop()) forget();
    }
    // A call uses or made it, so its shape must be kept.
    bool in_graph() const noexcept { return creator || references_.get() > users_.get(); }
    // Mixing it with volatile variables would silently lose its graph.
    bool opposes_volatile() const noexcept {
        return requires_grad && !is_volatile && !is_parameter;
    }
    bool has_users() const noexcept { return users_.get() != 0; }
    bool unique() const noexcept { return references() == 1; }
    std::uint32_t references() const noexcept { return references_.get(); }
    int rank() const noexcept;
    // Keeps next, and its data, as the gradient's variable.
    void set_grad_node(Ref<VariableNode> next) noexcept;
    // Sets the gradient. With grad_in_place, copies it into the existing array.
    void write_grad(Array gradient);
    static bool any_grad_hooks() noexcept;  // on any variable of the process
    void unchain() noexcept;                // see Variable

    Array data;
    Array grad;
    Ref<VariableNode> grad_node;  // the gradient as a variable with a graph, or null
    Ref<GraphNode> creator;
    std::unique_ptr<std::string> name;
    std::unique_ptr<const std::function<void()>> grad_hook;
    std::int32_t output_index = 0;
    // Of a leaf: the factor of grad, from BackwardOptions of the last backward().
    float loss_scale = 1;
    bool requires_grad = false;
    bool is_volatile = false;
    bool is_parameter = false;  // can be combined with volatile and other variables
    // Result of a call on volatile variables: after set_volatile(false) it takes a gradient.
    bool volatile_result = false;
    // Others hold the gradient's array and must see every change, so it is always written in place.
    bool grad_in_place = false;
    bool unchained = false;  // had a creator until unchain_backward()

private:
    void forget() noexcept;

    RefCount references_{0};
    RefCount users_{0};
};

// One call: edges to its inputs, what it keeps for its gradients, and how to compute them. Hosts
// derive their own: make it with new inside a Ref, compute, then record() inputs and results.
class GraphNode : public Pooled {
public:
    virtual ~GraphNode() = default;

    void retain() noexcept { references_.add(); }
    void release() noexcept {
        if (references_.drop()) destroy(this);
    }
    std::uint32_t references() const noexcept { return references_.get(); }

    virtual std::string_view label() const noexcept = 0;
    // The name in messages: "input 0", unless overridden.
    virtual std::string input_name(std::size_t i) const;
    virtual std::string output_name(std::size_t i) const;
    // The location of the call, one line per frame; empty unless config().debug was on.
    std::string created_at() const;
    int rank() const noexcept { return rank_; }
    // The composition that made the call, or null.
    const CallGroup* group() const noexcept { return group_.get(); }
    // Null for a missing optional input. An output is null when nobody else holds it.
    std::span<const Ref<VariableNode>> inputs() const noexcept { return inputs_; }
    std::span<VariableNode* const> outputs() const noexcept { return outputs_; }

    // Computes the function from other arrays, with the attributes of this call. Records nothing
    // and leaves hidden outputs out. If a program defines the function, forward() may change the
    // members that gradients() reads. Throws UnsupportedError if the class does not override this
    // method, and GraphError for a function that a program defines, after unchain().
    virtual std::vector<Array> forward(std::span<const Array> inputs) const;
    // Drops edges and retained arrays: the call is no longer part of any graph.
    virtual void unchain();

protected:
    // Computes gx[i], the gradient of input i, for every i with wanted[i], from those of the
    // outputs. gy[i] is empty where no gradient reached output i. The gx are empty at first; one
    // that stays empty is zero. Calls in here record a graph if config().enable_backprop is on.
    virtual void gradients(std::span<const Variable> gy, std::span<const bool> wanted,
                           std::span<Variable> gx) = 0;

    // Throws GraphError for an input of which the graph kept the shape alone.
    void check_data(std::span<const Variable> inputs) const;
    // Ends a call. `outputs` are new leaves with the values that the call computed. They become its
    // results in the graph if config().enable_backprop is on, no input is volatile, and there is an
    // input that requires a gradient or no input at all. An output whose requires_grad is off stays
    // so; without a graph it is turned off for all outputs. A null pointer or an empty variable is
    // a missing input, an empty variable a missing output. Returns whether there is a graph. Throws
    // GraphError if volatile variables and others are mixed, ValueError for NaN in debug mode.
    bool record(std::span<const Variable* const> inputs, std::span<const Variable> outputs);

    // Keeps the data of an input or output for gradients(). If they are written in place
    // afterwards, backward() throws GraphError. An empty variable is a missing input.
    void retain_input(std::size_t i, const Variable& x) { keep(retained_x_, i, x); }
    void retain_output(std::size_t i, const Variable& y) { keep(retained_y_, i, y); }
    // In gradients(): input or output i as a variable of the graph; empty if it was not kept.
    Variable retained_input(std::size_t i) const;
    Variable retained_output(std::size_t i);
    // The name of a retained array that was written in place since; "" if there is none.
    std::string changed() const;

private:
    friend class BackwardPass;
    friend class CallNode;
    friend struct PassCall;
    friend class VariableNode;
    struct Retained {
        Array array;
        std::uint32_t version;
        std::uint32_t index : 31;
        std::uint32_t requires_grad : 1;
    };
    using RetainedArrays = SmallVector<Retained, 2>;

    static void destroy(GraphNode* node) noexcept;
    // Records the edges, and those settings of the configuration `now` that the gradient needs.
    void connect(std::span<const Variable* const> inputs, std::span<const Variable> outputs,
                 const Config& now);
    static const Retained* find(const RetainedArrays& list, std::size_t i);
    static void keep(RetainedArrays& list, std::size_t i, const Variable& variable);
    // Throws GraphError unless the call has its graph, and the values that forward saw.
    void check_retained() const;
    // Adds the gradients of the inputs to those of the pass.
    virtual void backward(std::span<const Array> gy, BackwardPass& pass);

    SmallVector<Ref<VariableNode>, 4> inputs_;
    SmallVector<VariableNode*, 2> outputs_;
    RetainedArrays retained_x_;
    RetainedArrays retained_y_;
    RefCount references_{0};
    int rank_ = 0;
    PassCall* in_pass_ = nullptr;  // of the backward pass under way
    GraphNode* next_dead_ = nullptr;
    Ref<const CallGroup> group_;
    std::unique_ptr<std::vector<void*>> trace_;  // in debug mode
    std::shared_ptr<const Config> named_;        // null: no named settings during the call
};

// Adds to the gradient of a leaf; may keep gradient's memory if nobody else holds it.
void accumulate(VariableNode& node, Array gradient);
void accumulate(VariableNode& node, const Variable& gradient);

}  // namespace catena
