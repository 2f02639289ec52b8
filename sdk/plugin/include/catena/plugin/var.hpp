// Var: a variable of the host's graph with the operators of a number, for compositions and
// gradients of any order.
#pragma once

#include <atomic>
#include <initializer_list>
#include <span>
#include <vector>

#include "catena/plugin/kernel.hpp"

namespace catena::plugin {

namespace detail {
// The callback that the thread runs: calls without variables belong to it.
struct Callback {
    catena_ctx* ctx = nullptr;
    bool composes = false;
};
inline thread_local constinit Callback callback;
struct CallbackScope {
    explicit CallbackScope(Callback now) : before(callback) { callback = now; }
    CallbackScope(CallbackScope&&) = delete;
    ~CallbackScope() { callback = before; }
    const Callback before;
};
}  // namespace detail

// The shape and dtype of a variable.
struct Meta : catena_meta {
    Shape shape() const& { return {catena_meta::shape, static_cast<std::size_t>(ndim)}; }
    // Extent of an axis; a negative one counts from the end.
    std::int64_t dim(std::int64_t axis) const {
        return catena_meta::shape[axis < 0 ? axis + ndim : axis];
    }
    std::int64_t size() const { return size_of(shape()); }
};

// A variable or a constant. Variables belong to the host and live during the callback. In a
// gradient, the constant 0 also means "no gradient": products with it vanish.
class Var {
public:
    Var(double constant = 0) : constant_(constant) {}  // NOLINT(google-explicit-constructor)
    Var(catena_ctx* ctx, catena_var* var) : ctx_(ctx), var_(var) {}
    // The argument of a call for a missing optional input.
    static Var missing() {
        Var var;
        var.missing_ = true;
        return var;
    }

    bool is_missing() const { return missing_; }
    bool is_constant() const { return var_ == nullptr; }
    bool is_constant(double value) const { return var_ == nullptr && constant_ == value; }
    double constant() const { return constant_; }
    catena_ctx* context() const { return ctx_; }
    catena_var* get() const { return var_; }
    template <std::same_as<bool> B>
    explicit operator B() const {
        static_assert(sizeof(B) == 0,
                      "gradient: write math::where(condition, a, b) instead of if, ?:, && or !; "
                      "is_constant(0) says that there is none");
        return false;
    }
    Meta meta() const;
    std::int64_t ndim() const { return meta().ndim; }
    std::int64_t dim(std::int64_t axis) const { return meta().dim(axis); }
    std::int64_t size() const { return meta().size(); }
    catena_dtype dtype() const { return meta().dtype; }

private:
    catena_ctx* ctx_ = nullptr;
    catena_var* var_ = nullptr;
    double constant_ = 0;
    bool missing_ = false;
};

namespace detail {
void call_all(std::atomic<const catena_callable*>& found, const char* name,
              std::span<const Var> inputs, std::span<const catena_named_value> attrs,
              std::span<Var> y);
}
// The inputs of a call: {x, W, b}, or a list of any length.
struct Vars : std::span<const Var> {
    using span::span;
    Vars(std::initializer_list<Var> list) : span(list.begin(), list.size()) {}
};
// Calls a host function by its full name, which is looked up once. Constants among the inputs
// become 0-d arrays like the first variable.
template <Name name, std::size_t n_y = 1>
std::array<Var, n_y> call_all(Vars inputs, std::initializer_list<catena_named_value> attrs = {}) {
    static constinit std::atomic<const catena_callable*> found{nullptr};
    std::array<Var, n_y> y;
    detail::call_all(found, name.text, inputs, attrs, y);
    return y;
}
template <Name name>
Var call(Vars inputs, std::initializer_list<catena_named_value> attrs = {}) {
    return call_all<name>(inputs, attrs)[0];
}

// A 0-d array with x's dtype, on its device.
Var scalar_like(const Var& x, double value);

Var operator-(const Var& a);
Var operator+(const Var& a, const Var& b);
Var operator-(const Var& a, const Var& b);
Var operator*(const Var& a, const Var& b);
Var operator/(const Var& a, const Var& b);

// Comparisons return 1 and 0 in the operands' dtype, without a gradient.
Var operator>(const Var& a, const Var& b);
Var operator>=(const Var& a, const Var& b);
Var operator<(const Var& a, const Var& b);
Var operator<=(const Var& a, const Var& b);
Var operator==(const Var& a, const Var& b);
// Returns 1 where both comparisons are true, else 0.
Var operator&(const Var& a, const Var& b);

namespace math {
Var where(const Var& condition, const Var& yes, const Var& no);
Var isnan(const Var& x);
Var unless_nan(const Var& x, const Var& value);
Var abs(const Var& x);
Var max(const Var& a, const Var& b);
Var min(const Var& a, const Var& b);
Var sqrt(const Var& x);
Var exp(const Var& x);
Var log(const Var& x);
Var erf(const Var& x);
Var sin(const Var& x);
Var cos(const Var& x);
Var tanh(const Var& x);
Var sigmoid(const Var& x);
Var pow(const Var& a, const Var& b);
}  // namespace math

// For the constant 0, which means "no gradient", all of these return the constant 0.

// Sums x over the axes that broadcasting would repeat, so that it has this shape.
Var sum_to(const Var& x, const IntList& shape);
Var reshape(const Var& x, const IntList& shape);
Var broadcast_to(const Var& x, const IntList& shape);
// axes: the axis of x for each axis of the result; empty: reversed.
Var transpose(const Var& x, const IntList& axes = {});
// axis: empty means all.
Var sum(const Var& x, const IntList& axis = {}, bool keepdims = false);
Var cast(const Var& x, catena_dtype dtype);
Var matmul(const Var& a, const Var& b, bool transa = false, bool transb = false);

namespace detail {
template <class F>
constexpr bool has_host_port() {
    for (const Port& port : F::about.inputs)
        if ((port.flags & CATENA_PORT_HOST) != 0) return true;
    return false;
}
std::vector<std::int64_t> elements(catena_ctx* ctx, const char* function, const Var& x);
void store(const char* function, const catena_compose_call& call, Vars y);
// Returns an input's gradient, summed over the axes that were broadcast; null for the constant 0.
catena_var* gradient_like(const char* function, const Var& gradient, const catena_meta* x);
}  // namespace detail

template <class F>
struct SameAttribute {
    consteval SameAttribute(const char* name) : index(F::about.attribute(name)) {  // NOLINT
        if (index == F::about.attrs.size()) throw "same(): the function has no such attribute";
    }
    std::size_t index;
};

// The part that the arguments of F::gradient(g) and F::compose(g) have in common.
template <class F, class Call>
class VariableCall {
public:
    VariableCall(catena_ctx* ctx, const Call& call, bool composes)
        : ctx_(ctx), call_(call), scope_({ctx, composes}) {}

    std::size_t n_x() const { return call_.n_x; }  // ports, missing ones included
    template <Name name>
    auto attr() const {
        return attribute<F, name>(call_.attrs);
    }
    // Passes an attribute of this call to another one, under the same name: g.same("axis").
    catena_named_value same(SameAttribute<F> attr) const {
        return {F::about.attrs[attr.index].name, call_.attrs[attr.index]};
    }
    bool train() const { return (call_.flags & CATENA_CALL_TRAIN) != 0; }
    catena_ctx* context() const { return ctx_; }
    const Call& raw() const { return call_; }

protected:
    catena_ctx* ctx_;
    const Call& call_;

private:
    const detail::CallbackScope scope_;
};

// The argument of F::gradient(g): call g.gx(i, ...) for every i with g.wants(i).
template <class F>
class Gradient : public VariableCall<F, catena_gradient_call> {
    using Base = VariableCall<F, catena_gradient_call>;
    using Base::call_;

public:
    Gradient(catena_ctx* ctx, const catena_gradient_call& call) : Base(ctx, call, false) {}

    bool wants(std::size_t i) const { return (call_.targets[i / 64] >> (i % 64) & 1) != 0; }
    bool has(std::size_t i) const { return i < call_.n_x && call_.x_meta[i] != nullptr; }
    // Values in retain_x and retain_y; the constant 0 for a missing optional input.
    Var x(std::size_t i) const {
        if (!detail::retains_x<F>(i)) detail::fail_unretained(F::about.name, "gradient", 'x', i);
        return make(call_.x[i]);
    }
    Var y(std::size_t i) const {
        if (!detail::retains_y<F>(i)) detail::fail_unretained(F::about.name, "gradient", 'y', i);
        return make(call_.y[i]);
    }
    Var gy(std::size_t i) const { return make(call_.gy[i]); }  // the constant 0 if there is none
    // Shape and dtype of an input, retained or not.
    const catena_meta& x_meta(std::size_t i) const {
        if (!has(i)) detail::fail_missing(F::about.name, "gradient", i);
        return *call_.x_meta[i];
    }
    Shape x_shape(std::size_t i) const { return shape_of(x_meta(i)); }
    // Sets the gradient of input i, summed over the axes that the forward call broadcast.
    void gx(std::size_t i, const Var& gradient) const {
        call_.gx[i] = detail::gradient_like(F::about.name, gradient,
                                            gradient.is_constant() ? nullptr : &x_meta(i));
    }

private:
    Var make(catena_var* var) const { return var == nullptr ? Var(0) : Var(this->ctx_, var); }
};

}  // namespace catena::plugin
