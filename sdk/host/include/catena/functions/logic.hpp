// Comparisons, logic and selection, as in NumPy. Operands broadcast; dtypes are promoted as in
// operators.hpp. Results of comparisons and logic are bool arrays, without a gradient.
#pragma once

#include <catena/operators.hpp>

namespace catena::functions {

// Functions of two operands: arrays, variables, or one of them and a number. If one is a variable,
// the result is a variable without a graph.
#define CATENA_LOGIC_OF_TWO(NAME)                                                             \
    Array NAME(const Array& x0, const Array& x1);                                             \
    Array NAME(const Array& x0, Scalar x1);                                                   \
    Array NAME(Scalar x0, const Array& x1);                                                   \
    template <class X0, class X1>                                                             \
        requires(Compared<X0, X1>)                                                            \
    auto NAME(const X0& x0, const X1& x1)                                                     \
        ->decltype(catena::detail::elements(x0), catena::detail::elements(x1), Variable()) {  \
        return as_variable(NAME(catena::detail::elements(x0), catena::detail::elements(x1))); \
    }
CATENA_LOGIC_OF_TWO(equal)
CATENA_LOGIC_OF_TWO(not_equal)
CATENA_LOGIC_OF_TWO(greater)
CATENA_LOGIC_OF_TWO(greater_equal)
CATENA_LOGIC_OF_TWO(less)
CATENA_LOGIC_OF_TWO(less_equal)
// Any dtype: numbers other than 0 are true, NaN too.
CATENA_LOGIC_OF_TWO(logical_and)
CATENA_LOGIC_OF_TWO(logical_or)
CATENA_LOGIC_OF_TWO(logical_xor)
#undef CATENA_LOGIC_OF_TWO

#define CATENA_LOGIC_OF_ONE(NAME) \
    Array NAME(const Array& x);   \
    inline Variable NAME(const Variable& x) { return as_variable(NAME(x.data())); }
CATENA_LOGIC_OF_ONE(logical_not)
CATENA_LOGIC_OF_ONE(isnan)
CATENA_LOGIC_OF_ONE(isinf)
CATENA_LOGIC_OF_ONE(isfinite)
#undef CATENA_LOGIC_OF_ONE

// Whether |x0 - x1| <= atol + rtol * |x1|. Infinities are close to themselves; NaN is close to NaN
// only with equal_nan.
Array isclose(const Array& x0, const Array& x1, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false);
inline Variable isclose(const Variable& x0, const Variable& x1, double rtol = 1e-5,
                        double atol = 1e-8, bool equal_nan = false) {
    return as_variable(isclose(x0.data(), x1.data(), rtol, atol, equal_nan));
}

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
