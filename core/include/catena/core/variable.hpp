// Variable: an array that records how it was computed, with its gradient.
#pragma once

#include <catena/core/graph.hpp>

#include <concepts>

namespace catena {

// A shared handle, as in Chainer: copies are the same variable. A graph belongs to one thread at a
// time. A variable owns the calls and variables it was computed from, not those computed from it.
class Variable {
public:
    Variable() = default;  // empty
    // A leaf. Integer and bool arrays never get a gradient.
    explicit Variable(Array data, bool is_volatile = false);
    explicit Variable(Ref<VariableNode> node);  // the node's user

    Variable(const Variable& other) noexcept : node_(other.node_) {
        if (node_) node_->add_user();
    }
    Variable(Variable&& other) noexcept = default;
    Variable& operator=(Variable other) noexcept {
        std::swap(node_, other.node_);
        return *this;
    }
    ~Variable() {
        if (node_) node_->drop_user();
    }

    explicit operator bool() const noexcept { return static_cast<bool>(node_); }
    // data(), grad() and name() of a temporary, as in f(x).data(), are values: references dangle.
    const Array& data() const& { return node().data; }
    Array data() && { return node().data; }
    // A new shape, dtype or device clears grad(); throws GraphError if the variable is in a graph.
    void set_data(Array data) const;
    Shape shape() const { return data().shape(); }
    int ndim() const { return data().ndim(); }
    std::int64_t size() const { return data().size(); }
    Dtype dtype() const { return data().dtype(); }
    Device device() const { return data().device(); }
    // The only element of the data, like Array::item(): sum_loss += loss.item().
    template <class T = double>
    T item() const {
        return data().template item<T>();
    }

    // The gradient; empty until backward() reaches the variable. A leaf sums it over several calls.
    const Array& grad() const& { return node().grad; }
    Array grad() && { return node().grad; }
    // The gradient with its own graph, after backward(..., enable_double_backprop = true).
    Variable grad_variable() const;
    // An empty array clears it. Throws if shape, dtype or device differ from those of the data.
    void set_grad(Array grad) const;
    void set_grad(const Variable& grad) const;
    void cleargrad() const;  // removes the gradient
    void zerograd() const;   // sets it to zeros, in place if there is no other handle

    // Sets a function that backward() calls when the gradient of this leaf is complete. Other calls
    // of the graph run afterwards, so the gradient can be sent to other processes meanwhile. Leaves
    // without a gradient and grad() call no hook. The hook must not change the graph; an exception
    // of it ends backward(). An empty function removes the hook.
    void set_grad_hook(std::function<void()> hook) const;

    // Whether backward() computes a gradient here. The default is true for floating leaves, and for
    // results if one of the inputs requires a gradient.
    bool requires_grad() const { return node().requires_grad; }
    void set_requires_grad(bool value) const;
    // Calls on volatile variables record no graph, and their results are volatile. A call cannot
    // mix volatile variables with others that require gradients, except Parameters.
    // set_volatile(false) corresponds to Chainer's `feat.volatile = False`: it turns the result of
    // such a call into a leaf, which requires a gradient if it is floating; backward() ends there.
    // set_volatile(true) keeps the graph recorded so far; later calls record none.
    bool is_volatile() const { return node().is_volatile; }
    void set_volatile(bool value) const;
    const std::string& name() const&;
    std::string name() && { return std::as_const(*this).name(); }
    void set_name(std::string name) const;

    // The call that computed it, or null for a leaf. rank: the most calls on any path from a leaf.
    GraphNode* creator() const { return node().creator.get(); }
    int rank() const { return node().rank(); }

    // Backpropagates from here to every leaf; gradients are added to existing ones. A variable of
    // one element starts with gradient 1; any other needs set_grad() first, otherwise GraphError is
    // thrown. Gradients of results are freed after use unless retain_grad is set. With
    // enable_double_backprop, gradients are variables with their own graph. The graph is kept, so a
    // second backward() adds the gradients again. A leaf that requires a gradient gets its own
    // only. Throws GraphError if there is nothing to compute: for a variable that no graph leads to
    // and that requires no gradient, and after unchain_backward().
    void backward(bool retain_grad = false, bool enable_double_backprop = false) const&;
    // The same for a variable that is no longer needed: std::move(loss).backward(). It frees the
    // memory that calls kept for their gradients as soon as it has been used, unless another
    // variable still refers to it. Data and gradient stay readable; another backward() through the
    // graph throws GraphError. With enable_double_backprop nothing is freed.
    void backward(bool retain_grad = false, bool enable_double_backprop = false) &&;
    // Makes it a leaf: its call no longer computes it, but still computes its other results.
    void unchain() const { node().unchain(); }
    // Removes all calls that led to this variable from the graph, back to the leaves.
    void unchain_backward() const;

    VariableNode& node() const;
    const Ref<VariableNode>& node_ref() const noexcept { return node_; }

private:
    Ref<VariableNode> node_;
};

// A trainable leaf: it takes gradients, and can be combined with volatile variables. Links declare
// their parameters with this type and list them in visit(). A shared handle like every Variable,
// but only a Parameter can be assigned to it, so a link cannot get a variable of another kind.
class Parameter : public Variable {
public:
    Parameter() = default;  // empty
    // Shares the array's memory. Throws DtypeError unless the array is floating.
    explicit Parameter(Array data);
    // As in Chainer: Parameter(initializers::Normal(1), {3, 2}), or Parameter(0, {3}) in float32.
    template <std::invocable<const Shape&> Initializer>
    Parameter(const Initializer& initializer, const Shape& shape) : Parameter(initializer(shape)) {}
    Parameter(double value, const Shape& shape) : Parameter(Array::full(shape, value)) {}
};

// A leaf that does not require a gradient: minibatches, labels, constants.
Variable as_variable(Array data);
// The old name of Parameter(data).
inline Parameter as_parameter(Array data) { return Parameter(std::move(data)); }

// For links and optimizers: a link lists the parameter in visit(), or an optimizer trains it.
void note_listed(const Variable& parameter) noexcept;
// Reports parameters that this thread has made and nobody has listed, but which have a gradient:
// they are neither trained nor saved. Throws GraphError in debug mode, else logs a warning.
void report_unlisted();

}  // namespace catena
