// Operators on variables and on arrays, as in NumPy. Operands broadcast, and one of them may be a
// number. Each operator calls one registered function; on arrays alone it records no graph.
#pragma once

#include <catena/core/variable.hpp>

namespace catena {

// dot() is F::matmul: the product of matrices, vectors, or stacks of matrices, which broadcast; for
// stacks it differs from numpy.dot, as Python's @ does. NumPy's x.dot(W.T) is dot(x,
// F::transpose(W)); F::matmul(x, W, false, true) gives the same without copying W.
#define CATENA_ARITHMETIC(X)                                    \
    X operator+(const X& x0, const X& x1);                      \
    X operator-(const X& x0, const X& x1);                      \
    X operator*(const X& x0, const X& x1);                      \
    X operator/(const X& x0, const X& x1);                      \
    X pow(const X& x0, const X& x1);                            \
    X dot(const X& a, const X& b);                              \
    X operator-(const X& x);                                    \
    inline X operator+(const X& x) { return x; }                \
    X operator+(const X& x, double c);                          \
    X operator*(const X& x, double c);                          \
    X operator-(double c, const X& x);                          \
    X operator/(double c, const X& x);                          \
    X pow(const X& x, double c);                                \
    X pow(double c, const X& x);                                \
    inline X operator+(double c, const X& x) { return x + c; }  \
    inline X operator*(double c, const X& x) { return x * c; }  \
    inline X operator-(const X& x, double c) { return x + -c; } \
    inline X operator/(const X& x, double c) { return x * (1 / c); }
CATENA_ARITHMETIC(Variable)
CATENA_ARITHMETIC(Array)
#undef CATENA_ARITHMETIC

// Masks are bool arrays. F::where() selects by a mask. &, | and ~ combine masks, and throw
// DtypeError for other dtypes. In arithmetic a mask counts as 1 and 0, in the dtype of the other
// array, or in float32 with a number or another mask. If y is not float32, write 2 * y * (x > 0)
// instead of 2 * (x > 0) * y. F::greater(), F::greater_equal() and F::equal() also compare, and
// return 1 and 0 in the inputs' dtype. There is no operator ==, because arrays are handles.
// F::sum() does not accept masks: cast them.
Array operator>(const Array& x0, const Array& x1);
Array operator>=(const Array& x0, const Array& x1);
Array operator>(const Array& x, double c);
Array operator>=(const Array& x, double c);
Array operator<(const Array& x, double c);
Array operator<=(const Array& x, double c);

Array operator&(const Array& x0, const Array& x1);
Array operator|(const Array& x0, const Array& x1);
Array operator~(const Array& x);

inline Array operator<(const Array& x0, const Array& x1) { return x1 > x0; }
inline Array operator<=(const Array& x0, const Array& x1) { return x1 >= x0; }
inline Array operator>(double c, const Array& x) { return x < c; }
inline Array operator>=(double c, const Array& x) { return x <= c; }
inline Array operator<(double c, const Array& x) { return x > c; }
inline Array operator<=(double c, const Array& x) { return x >= c; }

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
inline const Array& elements(const Variable& x) { return x.data(); }
inline const Array& elements(const Array& x) { return x; }
inline double elements(double c) { return c; }
}  // namespace detail

#define CATENA_MIXED_OPERATOR(OPERATOR)                                    \
    template <class X0, class X1>                                          \
    requires Mixed<X0, X1> Variable OPERATOR(const X0& x0, const X1& x1) { \
        return OPERATOR(detail::operand(x0), detail::operand(x1));         \
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
    requires Compared<X0, X1>                                                     \
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
// instead. y must have the dtype and device of x, or be a mask, and must broadcast to the shape of
// x; x + number has the dtype of x. Otherwise the operator throws ShapeError, DtypeError or
// DeviceError and changes nothing. An empty handle throws InvalidError, also in x += y, because
// copies of x would not see a new array.
const Array& operator+=(const Array& x, const Array& y);
const Array& operator-=(const Array& x, const Array& y);
const Array& operator*=(const Array& x, const Array& y);
const Array& operator/=(const Array& x, const Array& y);
const Array& operator+=(const Array& x, double c);
const Array& operator*=(const Array& x, double c);
inline const Array& operator-=(const Array& x, double c) { return x += -c; }
inline const Array& operator/=(const Array& x, double c) { return x *= 1 / c; }

}  // namespace catena
