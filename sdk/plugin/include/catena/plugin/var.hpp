// Var: a variable of the host's graph with the operators of a number, so that the formula of a
// gradient also builds it out of host functions, differentiable to any order.
#pragma once

#include <atomic>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <vector>

#include "catena/plugin/elementwise.hpp"

namespace catena::plugin {

// A variable or a constant. Variables belong to the host and live for the callback. The constant 0
// also stands for "no gradient": what is multiplied by it vanishes.
class Var {
public:
    Var(double constant = 0) : constant_(constant) {}  // NOLINT(google-explicit-constructor)
    Var(catena_ctx* ctx, catena_var* var) : ctx_(ctx), var_(var) {}

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
    catena_meta meta() const {
        catena_meta meta;
        meta.struct_size = sizeof meta;
        if (const catena_status s = host().meta(ctx_, var_, &meta); s != CATENA_OK) throw Error(s);
        return meta;
    }

private:
    catena_ctx* ctx_ = nullptr;
    catena_var* var_ = nullptr;
    double constant_ = 0;
};

// Calls a host function by its full name, resolved once. Constants among the inputs become 0-d
// arrays like the first variable; at least one input is a variable.
template <Name name, std::size_t n_y = 1>
std::array<Var, n_y> call_all(std::initializer_list<Var> inputs,
                              std::initializer_list<catena_named_value> attrs = {});
template <Name name>
Var call(std::initializer_list<Var> inputs, std::initializer_list<catena_named_value> attrs = {}) {
    return call_all<name>(inputs, attrs)[0];
}

// A 0-d array of x's dtype, on its device.
inline Var scalar_like(const Var& x, double value) {
    return call<"catena.scalar_like">({x}, {set("value", value)});
}

template <Name name, std::size_t n_y>
std::array<Var, n_y> call_all(std::initializer_list<Var> inputs,
                              std::initializer_list<catena_named_value> attrs) {
    static constinit std::atomic<const catena_callable*> found{nullptr};
    const Var* first = nullptr;
    for (const Var& input : inputs)
        if (first == nullptr && !input.is_constant()) first = &input;
    if (first == nullptr) throw Error(CATENA_E_INTERNAL, std::string(name.text) + ": no variable");
    catena_ctx* ctx = first->context();
    const catena_callable* callable = found.load(std::memory_order_relaxed);
    if (callable == nullptr) {
        if (const catena_status s = host().find(ctx, name.text, &callable); s != CATENA_OK)
            throw Error(s);
        found.store(callable, std::memory_order_relaxed);
    }
    std::array<catena_var*, CATENA_MAX_PORTS> x;
    std::uint32_t n_x = 0;
    for (const Var& input : inputs)
        x[n_x++] = input.is_constant() ? scalar_like(*first, input.constant()).get() : input.get();
    std::array<catena_var*, n_y> y{};
    const catena_status s =
        host().call(ctx, callable, attrs.begin(), static_cast<std::uint32_t>(attrs.size()),
                    x.data(), n_x, y.data(), static_cast<std::uint32_t>(n_y));
    if (s != CATENA_OK) throw Error(s);
    std::array<Var, n_y> result;
    for (std::size_t i = 0; i < n_y; ++i) result[i] = Var(ctx, y[i]);
    return result;
}

inline Var operator-(const Var& a) {
    return a.is_constant() ? Var(-a.constant()) : call<"catena.neg">({a});
}
inline Var operator+(const Var& a, const Var& b) {
    if (a.is_constant() && b.is_constant()) return a.constant() + b.constant();
    if (a.is_constant(0)) return b;
    if (b.is_constant(0)) return a;
    if (a.is_constant()) return call<"catena.add_constant">({b}, {set("value", a.constant())});
    if (b.is_constant()) return call<"catena.add_constant">({a}, {set("value", b.constant())});
    return call<"catena.add">({a, b});
}
inline Var operator-(const Var& a, const Var& b) {
    if (a.is_constant() && b.is_constant()) return a.constant() - b.constant();
    if (a.is_constant(0)) return -b;
    if (b.is_constant()) return a + -b;
    if (a.is_constant()) return call<"catena.sub_from_constant">({b}, {set("value", a.constant())});
    return call<"catena.sub">({a, b});
}
inline Var operator*(const Var& a, const Var& b) {
    if (a.is_constant() && b.is_constant()) return a.constant() * b.constant();
    if (b.is_constant()) return b * a;
    if (a.is_constant(0) || a.is_constant(1)) return a.is_constant(0) ? a : b;
    if (a.is_constant()) return call<"catena.mul_constant">({b}, {set("value", a.constant())});
    return call<"catena.mul">({a, b});
}
inline Var operator/(const Var& a, const Var& b) {
    if (b.is_constant()) return a * Var(1 / b.constant());
    if (a.is_constant(0)) return a;
    if (a.is_constant()) return call<"catena.div_from_constant">({b}, {set("value", a.constant())});
    return call<"catena.div">({a, b});
}

// Comparisons give 1 and 0 in the operands' dtype, without a gradient.
inline Var operator>(const Var& a, const Var& b) {
    if (a.is_constant() && b.is_constant()) return a.constant() > b.constant() ? 1.0 : 0.0;
    return call<"catena.greater">({a, b});
}
inline Var operator>=(const Var& a, const Var& b) {
    if (a.is_constant() && b.is_constant()) return a.constant() >= b.constant() ? 1.0 : 0.0;
    return call<"catena.greater_equal">({a, b});
}
inline Var operator<(const Var& a, const Var& b) { return b > a; }
inline Var operator<=(const Var& a, const Var& b) { return b >= a; }
inline Var operator==(const Var& a, const Var& b) {
    if (a.is_constant() && b.is_constant()) return a.constant() == b.constant() ? 1.0 : 0.0;
    return call<"catena.equal">({a, b});
}
// Both of two comparisons.
inline Var operator&(const Var& a, const Var& b) { return a * b; }

namespace math {
inline Var where(const Var& condition, const Var& yes, const Var& no) {
    if (condition.is_constant()) return condition.constant() != 0 ? yes : no;
    if (yes.is_constant() && no.is_constant() && yes.constant() == no.constant()) return yes;
    return call<"catena.where">({condition, yes, no});
}
inline Var isnan(const Var& x) { return 1.0 - (x == x); }
inline Var unless_nan(const Var& x, const Var& value) {
    return where(x == x, value, std::numeric_limits<double>::quiet_NaN());
}
inline Var abs(const Var& x) {
    return x.is_constant() ? Var(std::abs(x.constant())) : call<"catena.abs">({x});
}
inline Var max(const Var& a, const Var& b) { return call<"catena.maximum">({a, b}); }
inline Var min(const Var& a, const Var& b) { return call<"catena.minimum">({a, b}); }
inline Var sqrt(const Var& x) {
    return x.is_constant() ? Var(std::sqrt(x.constant())) : call<"catena.sqrt">({x});
}
inline Var exp(const Var& x) {
    return x.is_constant() ? Var(std::exp(x.constant())) : call<"catena.exp">({x});
}
inline Var log(const Var& x) {
    return x.is_constant() ? Var(std::log(x.constant())) : call<"catena.log">({x});
}
inline Var tanh(const Var& x) {
    return x.is_constant() ? Var(std::tanh(x.constant())) : call<"catena.tanh">({x});
}
inline Var sigmoid(const Var& x) {
    return x.is_constant() ? Var(sigmoid(x.constant())) : call<"catena.sigmoid">({x});
}
inline Var pow(const Var& a, const Var& b) {
    if (a.is_constant() && b.is_constant()) return std::pow(a.constant(), b.constant());
    if (b.is_constant(1)) return a;
    if (b.is_constant()) return call<"catena.pow_var_const">({a}, {set("value", b.constant())});
    if (a.is_constant()) return call<"catena.pow_const_var">({b}, {set("value", a.constant())});
    return call<"catena.pow">({a, b});
}
}  // namespace math

// Of the constant 0, which stands for "no gradient", all of these make the constant 0. Shapes and
// axes may be written as {n, 1}.
using IntList = std::initializer_list<std::int64_t>;
inline Ints ints_of(IntList list) { return {list.begin(), list.size()}; }

// Sums x over what broadcasting to x's shape repeated, so that it has this shape.
inline Var sum_to(const Var& x, Shape shape) {
    return x.is_constant(0) ? x : call<"catena.sum_to">({x}, {set("shape", shape)});
}
inline Var sum_to(const Var& x, IntList shape) { return sum_to(x, ints_of(shape)); }
inline Var reshape(const Var& x, Shape shape) {
    return x.is_constant(0) ? x : call<"catena.reshape">({x}, {set("shape", shape)});
}
inline Var reshape(const Var& x, IntList shape) { return reshape(x, ints_of(shape)); }
inline Var broadcast_to(const Var& x, Shape shape) {
    return x.is_constant(0) ? x : call<"catena.broadcast_to">({x}, {set("shape", shape)});
}
inline Var broadcast_to(const Var& x, IntList shape) { return broadcast_to(x, ints_of(shape)); }
// axes: of x, for each axis of the result; empty: reversed.
inline Var transpose(const Var& x, Ints axes = {}) {
    return x.is_constant(0) ? x : call<"catena.transpose">({x}, {set("axes", axes)});
}
inline Var transpose(const Var& x, IntList axes) { return transpose(x, ints_of(axes)); }
// axis: empty: all.
inline Var sum(const Var& x, Ints axis = {}, bool keepdims = false) {
    if (x.is_constant(0)) return x;
    return call<"catena.sum">({x}, {set("axis", axis), set("keepdims", keepdims)});
}
inline Var sum(const Var& x, IntList axis, bool keepdims = false) {
    return sum(x, ints_of(axis), keepdims);
}
inline Var cast(const Var& x, catena_dtype dtype) {
    return x.is_constant(0) ? x : call<"catena.cast">({x}, {set("dtype", dtype)});
}
inline Var matmul(const Var& a, const Var& b, bool transa = false, bool transb = false) {
    if (a.is_constant(0) || b.is_constant(0)) return 0.0;
    return call<"catena.matmul">({a, b}, {set("transa", transa), set("transb", transb)});
}

inline Shape shape_of(const catena_meta& meta) {
    return {meta.shape, static_cast<std::size_t>(meta.ndim)};
}
inline bool same_shape(const catena_meta& a, const catena_meta& b) {
    if (a.ndim != b.ndim) return false;
    for (std::int32_t i = 0; i < a.ndim; ++i)
        if (a.shape[i] != b.shape[i]) return false;
    return true;
}

// What F::gradient(g) works on: g.gx(i, ...) for every i with g.wants(i).
template <class F>
class Gradient {
public:
    Gradient(catena_ctx* ctx, const catena_gradient_call& call) : ctx_(ctx), call_(call) {}

    std::size_t n_x() const { return call_.n_x; }  // ports, missing ones included
    bool wants(std::size_t i) const { return (call_.targets[i / 64] >> (i % 64) & 1) != 0; }
    bool has(std::size_t i) const { return i < call_.n_x && call_.x_meta[i] != nullptr; }
    // Those that retain_x and retain_y name; constant 0: an optional one is missing.
    Var x(std::size_t i) const {
        if (!detail::retains_x<F>(i)) detail::fail_unretained(F::about.name, "gradient", 'x', i);
        return make(call_.x[i]);
    }
    Var y(std::size_t i) const {
        if (!detail::retains_y<F>(i)) detail::fail_unretained(F::about.name, "gradient", 'y', i);
        return make(call_.y[i]);
    }
    Var gy(std::size_t i) const { return make(call_.gy[i]); }  // constant 0: none came
    // Shape and dtype of an input, retained or not.
    const catena_meta& x_meta(std::size_t i) const {
        if (!has(i)) detail::fail_missing(F::about.name, "gradient", i);
        return *call_.x_meta[i];
    }
    Shape x_shape(std::size_t i) const { return shape_of(x_meta(i)); }
    template <Name name>
    auto attr() const {
        return attribute<F, name>(call_.attrs);
    }
    bool train() const { return (call_.flags & CATENA_CALL_TRAIN) != 0; }
    // Sums over what the forward call broadcast.
    void gx(std::size_t i, Var gradient) const {
        if (gradient.is_constant()) {
            if (!gradient.is_constant(0))
                fail(CATENA_E_INTERNAL, F::about.name, "gradient", "a multiple of gy",
                     "a constant");
            call_.gx[i] = nullptr;
            return;
        }
        const catena_meta meta = gradient.meta();
        if (!same_shape(meta, x_meta(i))) gradient = sum_to(gradient, x_shape(i));
        call_.gx[i] = gradient.get();
    }
    catena_ctx* context() const { return ctx_; }
    const catena_gradient_call& raw() const { return call_; }

private:
    Var make(catena_var* var) const { return var == nullptr ? Var(0) : Var(ctx_, var); }

    catena_ctx* ctx_;
    const catena_gradient_call& call_;
};

}  // namespace catena::plugin
