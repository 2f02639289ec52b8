// The graph of variables and calls. Users access it through Variable.
#pragma once

#include <catena/core/array.hpp>
#include <catena/core/pool.hpp>
#include <catena/core/ref.hpp>
#include <catena/core/small_vector.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

class GraphNode;
class Variable;
struct Config;
struct NamedConfig;

// The role of a variable in a pass of grad().
enum class Route : std::uint8_t {
    plain,
    wanted,  // its gradient is requested and stays in pending, also for a leaf
    off,     // not on a path to a requested variable: takes no gradient
};

// A variable in the graph. It outlives the user's handles as long as the graph needs it; its data
// does not, unless a call retained it.
class VariableNode : public Pooled {
public:
    explicit VariableNode(Array array);
    ~VariableNode();

    void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void release() noexcept {
        if (references_.load(std::memory_order_acquire) == 1 ||
            references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            delete this;
        }
    }
    // Handles of the user, counted separately: when the last is gone, data and gradient are freed.
    void add_user() noexcept { users_.fetch_add(1, std::memory_order_relaxed); }
    void drop_user() noexcept {
        if (users_.load(std::memory_order_acquire) == 1 ||
            users_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            forget();
        }
    }
    // A call uses or made it, so its shape must be kept.
    bool in_graph() const noexcept {
        return creator ||
               references_.load(std::memory_order_acquire) > users_.load(std::memory_order_acquire);
    }
    // Mixing it with volatile variables would silently lose its graph.
    bool opposes_volatile() const noexcept {
        return requires_grad && !is_volatile && !is_parameter;
    }
    bool has_users() const noexcept { return users_.load(std::memory_order_acquire) != 0; }
    // There is only one reference, that of the caller.
    bool unique() const noexcept { return references_.load(std::memory_order_acquire) == 1; }
    // Gradients accumulate in pending; those of other variables in grad.
    bool gathers() const noexcept { return creator || route == Route::wanted; }
    int rank() const noexcept;
    // Keeps next, and its data, as the gradient's variable.
    void set_grad_node(Ref<VariableNode> next) noexcept;
    // Sets the gradient. With grad_in_place, copies it into the existing array.
    void write_grad(Array gradient);

    Array data;
    Array grad;
    Array pending;                // gradient during backward
    Ref<VariableNode> grad_node;  // the gradient as a variable with a graph, or null
    Ref<VariableNode> pending_node;
    Ref<GraphNode> creator;
    std::unique_ptr<std::string> name;
    std::int32_t output_index = 0;
    bool requires_grad = false;
    bool is_volatile = false;
    bool is_parameter = false;  // can be combined with volatile and other variables
    // Result of a call on volatile variables: after set_volatile(false) it takes a gradient.
    bool volatile_result = false;
    // Others hold the gradient's array and must see every change, so it is always written in place.
    bool grad_in_place = false;
    Route route = Route::plain;
    bool held = false;       // by a backward pass that frees the graph
    bool unchained = false;  // had a creator until unchain_backward()

private:
    void forget() noexcept;

    std::atomic<std::uint32_t> references_{0};
    std::atomic<std::uint32_t> users_{0};
};

// One call: edges to its inputs, retained values, and its backward. Hosts derive their own classes:
// create the object with new inside a Ref, compute, then record() inputs and results. A class that
// retains values overrides unchain() to drop them.
class GraphNode : public Pooled {
public:
    virtual ~GraphNode();

    void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void release() noexcept {
        if (references_.load(std::memory_order_acquire) == 1 ||
            references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            destroy(this);
        }
    }

    virtual std::string_view label() const noexcept = 0;
    // The name in messages: "input 0", unless overridden.
    virtual std::string input_name(std::size_t i) const;
    virtual std::string output_name(std::size_t i) const;
    // The location of the call, one line per frame; empty unless config().debug was on.
    std::string created_at() const;
    int rank() const noexcept { return rank_; }
    // Null for a missing optional input. An output is null when nobody else holds it.
    std::span<const Ref<VariableNode>> inputs() const noexcept {
        return {inputs_.data(), inputs_.size()};
    }
    std::span<VariableNode* const> outputs() const noexcept {
        return {outputs_.data(), outputs_.size()};
    }

    // Computes the function on other arrays, with the attributes of this call. Records nothing and
    // omits hidden outputs. For a function that a program defines, forward() may change members
    // that its backward() reads. Throws UnsupportedError if the class does not override this
    // method, and GraphError for a function of a program after unchain().
    virtual std::vector<Array> forward(std::span<const Array> inputs) const;

    // Adds to the pending gradient of every input i with wants(i). gy[i] is empty if output i has
    // no gradient.
    virtual void backward(std::span<const Array> gy) = 0;
    // The same on variables, recording a graph.
    virtual void backward(std::span<const Variable> gy) = 0;
    // Drops edges and retained arrays, so the call is no longer part of a graph.
    virtual void unchain();

    // A leaf without handles takes no gradient, nor does a variable that grad() does not need.
    bool wants(std::size_t i) const noexcept {
        const VariableNode* input = inputs_[i].get();
        return input && input->requires_grad && input->route != Route::off &&
               (input->creator || input->has_users());
    }

protected:
    friend class VariableNode;
    static void destroy(GraphNode* node) noexcept;
    // Finishes a call. `outputs` are new leaves with the computed values. They become results in
    // the graph if config().enable_backprop is on, no input is volatile, and an input requires a
    // gradient or there are no inputs. An output with requires_grad off keeps it off; without a
    // graph it is turned off for all outputs. A null pointer or an empty variable is a missing
    // input. Returns whether there is a graph. Throws GraphError if volatile variables are mixed
    // with others, ValueError for NaN in debug mode.
    bool record(std::span<const Variable* const> inputs, std::span<const Variable> outputs);
    // Records the edges, and the settings of the configuration `now` that the gradient needs.
    void connect(std::span<const Variable* const> inputs, std::span<const Variable> outputs,
                 const Config& now);

    SmallVector<Ref<VariableNode>, 4> inputs_;
    SmallVector<VariableNode*, 2> outputs_;

private:
    friend class BackwardPass;
    friend class Routes;
    std::atomic<std::uint32_t> references_{0};
    int rank_ = 0;
    bool queued_ = false;
    std::uint8_t mark_ = 0;  // while grad() searches its paths
    GraphNode* next_dead_ = nullptr;
    std::unique_ptr<std::vector<void*>> trace_;  // in debug mode
    std::shared_ptr<const NamedConfig> named_;   // null: no settings during the call
};

// Adds to node's pending gradient, or to grad for a leaf in an ordinary backward(). May keep
// gradient's memory if there is no other reference.
void accumulate(VariableNode& node, Array gradient);
void accumulate(VariableNode& node, const Variable& gradient);

}  // namespace catena
