// Comparisons and selection, as in NumPy. Operands broadcast; dtypes are promoted as in
// operators.hpp. Results of comparisons are bool arrays, without a gradient.
#pragma once

#include <catena/operators.hpp>

namespace catena::functions {

// Functions of two operands: arrays, variables, or one of them and a number. If one is a variable,
// the result is a variable without a graph.
#define CATENA_COMPARISON(NAME)                                                               \
    Array NAME(const Array& x0, const Array& x1);                                             \
    Array NAME(const Array& x0, Scalar x1);                                                   \
    Array NAME(Scalar x0, const Array& x1);                                                   \
    template <class X0, class X1>                                                             \
        requires(Compared<X0, X1>)                                                            \
    auto NAME(const X0& x0, const X1& x1)                                                     \
        ->decltype(catena::detail::elements(x0), catena::detail::elements(x1), Variable()) {  \
        return as_variable(NAME(catena::detail::elements(x0), catena::detail::elements(x1))); \
    }
CATENA_COMPARISON(equal)
CATENA_COMPARISON(not_equal)
CATENA_COMPARISON(greater)
CATENA_COMPARISON(greater_equal)
CATENA_COMPARISON(less)
CATENA_COMPARISON(less_equal)
#undef CATENA_COMPARISON

// A function of variables, arrays, or a number and one of these; arrays next to variables are
// constants. Differentiable to any order.
#define CATENA_EXTREME(NAME)                                                   \
    Variable NAME(const Variable& x0, const Variable& x1);                     \
    Array NAME(const Array& x0, const Array& x1);                              \
    Variable NAME(const Variable& x0, Scalar x1);                              \
    Array NAME(const Array& x0, Scalar x1);                                    \
    template <class X>                                                         \
        requires(Operand<X>)                                                   \
    X NAME(Scalar x0, const X& x1) { return NAME(x1, x0); }                    \
    template <class X0, class X1>                                              \
        requires(Mixed<X0, X1>)                                                \
    Variable NAME(const X0& x0, const X1& x1) {                                \
        return NAME(catena::detail::operand(x0), catena::detail::operand(x1)); \
    }
// The larger and the smaller of x0 and x1. If one is NaN, the result and both gradients are NaN. If
// they are equal, x0 gets the gradient.
CATENA_EXTREME(maximum)
CATENA_EXTREME(minimum)
#undef CATENA_EXTREME

// x0 where the condition is not 0, else x1. The condition has any dtype, and no gradient. One of x0
// and x1 may be a number. Throws DtypeError and ShapeError.
Variable where(const Variable& condition, const Variable& x0, const Variable& x1);
Array where(const Array& condition, const Array& x0, const Array& x1);
Variable where(const Variable& condition, const Variable& x0, Scalar x1);
Array where(const Array& condition, const Array& x0, Scalar x1);
Variable where(const Variable& condition, Scalar x0, const Variable& x1);
Array where(const Array& condition, Scalar x0, const Array& x1);
// The same for arrays next to variables.
template <class C, class X0, class X1>
    requires(std::derived_from<C, Variable> || Compared<X0, X1>)
auto where(const C& condition, const X0& x0, const X1& x1)
    -> decltype(where(catena::detail::operand(condition), catena::detail::operand(x0),
                      catena::detail::operand(x1))) requires(std::same_as<C, Array> ||
                                                             std::same_as<X0, Array> ||
                                                             std::same_as<X1, Array>) {
    return where(catena::detail::operand(condition), catena::detail::operand(x0),
                 catena::detail::operand(x1));
}

}  // namespace catena::functions
