// Operators on variables and on arrays, as in NumPy. Operands broadcast, and one of them may be a
// number. Each operator calls one registered function; on arrays alone it records no graph.
//
// Dtypes are promoted by category, as in PyTorch: bool < integers < floating dtypes. int32 with
// int64 gives int64. Integers and bool take the floating dtype of the other array. Two different
// floating dtypes throw DtypeError, because a net must not compute in float64 by mistake. A number
// does not change the dtype of an array, but a floating number changes integers and bool to
// float32. Arithmetic of bool alone, or of bool and an integer number, gives int32. Integers /
// integers gives float32.
#pragma once

#include <catena/core/variable.hpp>

namespace catena {

// A number as an operand. Its C++ type determines whether it is an integer. Next to int64, an
// integer must be in the range of int64; next to other integers and bool, in that of int32.
class Scalar {
public:
    template <class N>
        requires(std::is_arithmetic_v<N>)
    Scalar(N value)  // NOLINT: is a number
        : value_(static_cast<double>(value)),
          integer_(std::integral<N> ? static_cast<std::int64_t>(value) : 0),
          is_integer_(std::integral<N>) {
        if constexpr (std::unsigned_integral<N>) is_wide_ = value > N(INT64_MAX);
    }
    // An integer beyond int64, as the nearest double.
    static Scalar wide_integer(double value) {
        Scalar wide = value;
        wide.is_wide_ = true;
        return wide;
    }
    double value() const { return value_; }
    std::int64_t integer() const { return integer_; }  // exact; 0 for other numbers
    bool is_integer() const { return is_integer_ && !is_wide_; }
    bool is_wide_integer() const { return is_wide_; }
    Scalar operator-() const {
        Scalar negative = *this;
        negative.value_ = -value_;
        negative.integer_ = static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(integer_));
        return negative;
    }

private:
    double value_;
    std::int64_t integer_;
    bool is_integer_;
    bool is_wide_ = false;
};

// dot() is F::matmul: the product of matrices, vectors, or stacks of matrices, which broadcast; for
// stacks it differs from numpy.dot, as Python's @ does. NumPy's x.dot(W.T) is dot(x,
// F::transpose(W)); F::matmul(x, W, false, true) gives the same without copying W.
//
// floor_divide() is Python's //: the largest integer not above x0 / x1, exact also for integers,
// whose result is an integer. It has no gradient.
#define CATENA_ARITHMETIC(X)                                    \
    X operator+(const X& x0, const X& x1);                      \
    X operator-(const X& x0, const X& x1);                      \
    X operator*(const X& x0, const X& x1);                      \
    X operator/(const X& x0, const X& x1);                      \
    X pow(const X& x0, const X& x1);                            \
    X dot(const X& a, const X& b);                              \
    X operator-(const X& x);                                    \
    inline X operator+(const X& x) { return x; }                \
    X operator+(const X& x, Scalar c);                          \
    X operator*(const X& x, Scalar c);                          \
    X operator-(Scalar c, const X& x);                          \
    X operator/(Scalar c, const X& x);                          \
    X pow(const X& x, Scalar c);                                \
    X pow(Scalar c, const X& x);                                \
    X floor_divide(const X& x0, const X& x1);                   \
    X floor_divide(const X& x, Scalar c);                       \
    X floor_divide(Scalar c, const X& x);                       \
    inline X operator+(Scalar c, const X& x) { return x + c; }  \
    inline X operator*(Scalar c, const X& x) { return x * c; }  \
    inline X operator-(const X& x, Scalar c) { return x + -c; } \
    inline X operator/(const X& x, Scalar c) { return x * (1 / c.value()); }
CATENA_ARITHMETIC(Variable)
CATENA_ARITHMETIC(Array)
#undef CATENA_ARITHMETIC

// Comparisons return masks, which are bool arrays; so do F::equal() and the other functions of
// functions/logic.hpp. There is no operator ==, because arrays are handles. Integers are compared
// with a number by value, also if the number is not an integer. &, | and ~ combine masks, and throw
// DtypeError for other dtypes. F::where() selects by a mask.
#define CATENA_COMPARISON(OPERATOR)                   \
    Array OPERATOR(const Array& x0, const Array& x1); \
    Array OPERATOR(const Array& x, Scalar c);         \
    Array OPERATOR(Scalar c, const Array& x);
CATENA_COMPARISON(operator>)
CATENA_COMPARISON(operator>=)
CATENA_COMPARISON(operator<)
CATENA_COMPARISON(operator<=)
#undef CATENA_COMPARISON

Array operator&(const Array& x0, const Array& x1);
Array operator|(const Array& x0, const Array& x1);
Array operator~(const Array& x);

// A variable or an array.
template <class X>
concept Operand = std::derived_from<X, Variable> || std::same_as<X, Array>;
// A variable and an array; the array becomes a constant.
template <class X0, class X1>
concept Mixed = (std::same_as<X0, Array> && std::derived_from<X1, Variable>) ||
                (std::derived_from<X0, Variable> && std::same_as<X1, Array>);

namespace detail {
inline const Variable& operand(const Variable& x) { return x; }
inline Variable operand(const Array& x) { return as_variable(x); }
inline Scalar operand(Scalar c) { return c; }
inline const Array& elements(const Variable& x) { return x.data(); }
inline const Array& elements(const Array& x) { return x; }
inline Scalar elements(Scalar c) { return c; }
}  // namespace detail

#define CATENA_MIXED_OPERATOR(OPERATOR)                            \
    template <class X0, class X1>                                  \
        requires(Mixed<X0, X1>)                                    \
    Variable OPERATOR(const X0& x0, const X1& x1) {                \
        return OPERATOR(detail::operand(x0), detail::operand(x1)); \
    }
CATENA_MIXED_OPERATOR(operator+)
CATENA_MIXED_OPERATOR(operator-)
CATENA_MIXED_OPERATOR(operator*)
CATENA_MIXED_OPERATOR(operator/)
CATENA_MIXED_OPERATOR(pow)
CATENA_MIXED_OPERATOR(dot)
#undef CATENA_MIXED_OPERATOR

// Comparisons of variables, and & and | of them, give a mask: a constant without a gradient.
template <class X0, class X1>
concept Compared = std::derived_from<X0, Variable> || std::derived_from<X1, Variable>;
#define CATENA_MASK_OPERATOR(OPERATOR)                                            \
    template <class X0, class X1>                                                 \
        requires(Compared<X0, X1>)                                                \
    auto OPERATOR(const X0& x0, const X1& x1)                                     \
        ->decltype(detail::elements(x0), detail::elements(x1), Variable()) {      \
        return as_variable(OPERATOR(detail::elements(x0), detail::elements(x1))); \
    }
CATENA_MASK_OPERATOR(operator>)
CATENA_MASK_OPERATOR(operator>=)
CATENA_MASK_OPERATOR(operator<)
CATENA_MASK_OPERATOR(operator<=)
CATENA_MASK_OPERATOR(operator&)
CATENA_MASK_OPERATOR(operator|)
#undef CATENA_MASK_OPERATOR
inline Variable operator~(const Variable& x) { return as_variable(~x.data()); }

// On variables x += y means x = x + y: x becomes a new variable, and other handles keep the old
// one. If x is empty, x += y sets it to y, so a loss can be summed starting from Variable().
template <std::same_as<Variable> X, class Y>
auto operator+=(X& x, const Y& y) -> decltype(x = x + y) {
    if constexpr (std::derived_from<Y, Variable>) {
        if (!x) return x = y;
    }
    return x = x + y;
}
#define CATENA_ASSIGNMENT(OPERATOR)                                           \
    template <std::same_as<Variable> X, class Y>                              \
    auto operator OPERATOR##=(X& x, const Y& y)->decltype(x = x OPERATOR y) { \
        return x = x OPERATOR y;                                              \
    }
CATENA_ASSIGNMENT(-)
CATENA_ASSIGNMENT(*)
CATENA_ASSIGNMENT(/)
#undef CATENA_ASSIGNMENT

// An array changes in place, as in NumPy: gw += gy * x, w.data() -= 0.1 * w.grad(). All handles to
// its memory see the change: copies of x, views, and the Variable whose data or gradient x is. If a
// graph has kept the memory, its backward() throws GraphError. `x = x + y` makes a new array
// instead. The result must have the dtype of x, so an integer x refuses a floating y; y must have
// the device of x and broadcast to its shape. Otherwise the operator throws ShapeError, DtypeError
// or DeviceError and changes nothing. An empty handle throws InvalidError, also in x += y, because
// copies of x would not see a new array.
const Array& operator+=(const Array& x, const Array& y);
const Array& operator-=(const Array& x, const Array& y);
const Array& operator*=(const Array& x, const Array& y);
const Array& operator/=(const Array& x, const Array& y);
const Array& operator+=(const Array& x, Scalar c);
const Array& operator*=(const Array& x, Scalar c);
inline const Array& operator-=(const Array& x, Scalar c) { return x += -c; }
inline const Array& operator/=(const Array& x, Scalar c) { return x *= 1 / c.value(); }

}  // namespace catena
