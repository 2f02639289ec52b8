// Variable: an array that remembers how it was computed, and its gradient.
#pragma once

#include <catena/core/array.hpp>
#include <catena/core/graph.hpp>

#include <concepts>
#include <string>

namespace catena {

// A shared handle, as in Chainer: copies are the same variable. A graph belongs to one thread at a
// time. The graph is owned backwards: a variable keeps what it was computed from, not what was
// computed from it.
class Variable {
public:
    Variable() = default;  // none
    // A leaf. An array of integers or bool never gets a gradient.
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
    const Array& data() const { return node().data; }
    // Another shape, dtype or device clears the gradient; GraphError if a graph refers to this.
    void set_data(Array data) const;
    Shape shape() const { return data().shape(); }
    int ndim() const { return data().ndim(); }
    std::int64_t size() const { return data().size(); }
    Dtype dtype() const { return data().dtype(); }
    Device device() const { return data().device(); }
    // The only element of the data, as Array::item(): sum_loss += loss.item().
    template <class T = double>
    T item() const {
        return data().template item<T>();
    }

    // The gradient; none until backward() reaches this variable. A leaf's accumulates over calls.
    const Array& grad() const { return node().grad; }
    // The gradient with its own graph, after backward(..., enable_double_backprop = true).
    Variable grad_variable() const;
    // none clears it. Throws if shape, dtype or device differ from data's.
    void set_grad(Array grad) const;
    void set_grad(const Variable& grad) const;
    void cleargrad() const;  // none
    void zerograd() const;   // zeros, in place if nobody else holds the gradient

    // Whether backward() computes a gradient here: floating leaves do unless told otherwise; a
    // result does if one of its inputs does.
    bool requires_grad() const { return node().requires_grad; }
    void set_requires_grad(bool value) const;
    // Calls on volatile variables record no graph; their results are volatile. A call may not mix
    // volatile variables with others that take gradients, except Parameters. set_volatile(false) is
    // Chainer's `feat.volatile = False`: it makes the result of such a call a leaf, which takes a
    // gradient if it is floating; backward() ends there. set_volatile(true) keeps the graph recorded
    // so far; later calls record none.
    bool is_volatile() const { return node().is_volatile; }
    void set_volatile(bool value) const;
    const std::string& name() const;
    void set_name(std::string name) const;

    // The call that made it, or null for a leaf. rank: calls on the longest way from a leaf.
    GraphNode* creator() const { return node().creator.get(); }
    int rank() const { return node().rank(); }

    // Backpropagates from here into every leaf: gradients are added to those already there. A
    // variable of one element starts with gradient 1; any other needs set_grad() first, else
    // GraphError. Gradients of results are dropped as soon as used unless retain_grad. With
    // enable_double_backprop gradients are variables with a graph of their own. The graph stays: a
    // second backward() adds the gradients once more. On a leaf backward() does nothing; after
    // unchain_backward() it throws GraphError.
    void backward(bool retain_grad = false, bool enable_double_backprop = false) const&;
    // The same for a variable that is not needed again: std::move(loss).backward(). It frees what calls
    // kept for their gradients as soon as that has been used, unless another variable still leads to
    // it. Data and gradient stay readable; another backward() through the graph throws GraphError.
    // With enable_double_backprop it frees nothing.
    void backward(bool retain_grad = false, bool enable_double_backprop = false) &&;
    // Removes the calls that led to this variable from the graph, all the way back to the leaves.
    void unchain_backward() const;

    VariableNode& node() const;
    const Ref<VariableNode>& node_ref() const noexcept { return node_; }

private:
    Ref<VariableNode> node_;
};

// A leaf that is learned: it takes gradients, and may meet volatile variables. What a link learns is
// declared as Parameter, and named in visit(). A shared handle like every Variable, but
// only a Parameter can be assigned to it, so that no link learns a variable of another kind.
class Parameter : public Variable {
public:
    Parameter() = default;  // none
    // Shares the array's memory. Throws DtypeError unless the array is floating.
    explicit Parameter(Array data);
    // As Chainer's: Parameter(initializers::Normal(1), {3, 2}), or Parameter(0, {3}) in float32.
    template <std::invocable<const Shape&> Initializer>
    Parameter(const Initializer& initializer, const Shape& shape) : Parameter(initializer(shape)) {}
    Parameter(double value, const Shape& shape) : Parameter(Array::full(shape, value)) {}
};

// A leaf that takes no gradient: minibatches, labels, constants.
Variable as_variable(Array data);
// Parameter(data), by its older name.
inline Parameter as_parameter(Array data) { return Parameter(std::move(data)); }

}  // namespace catena
