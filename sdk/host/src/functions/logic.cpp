// Comparisons and selection: functions/logic.hpp. The comparisons are the operators' ones.
#include "promotion.hpp"

#include <catena/functions.hpp>
#include <catena/functions/logic.hpp>

namespace catena::functions {
namespace {

// Calls maximum or minimum in the common dtype.
template <class X>
X extreme_of(const PluginFunction& function, const X& x0, const X& x1) {
    if (!x0 || !x1 || (is_floating(elements(x0)) && same_dtype(elements(x0), elements(x1))))
        [[likely]]
        return run(function, x0, x1);
    return run_in(
        common_dtype(x0.dtype(), x1.dtype()),
        [&](const X& y0, const X& y1) { return run(function, y0, y1); }, x0, x1);
}
// Returns x in the dtype that it has next to c.
template <class X>
X next_to(const char* function, const X& x, Scalar c) {
    expect(function, "x", x);
    return promoted(x, common_dtype(x.dtype(), c));
}
template <class X>
X extreme_of(const char* name, const PluginFunction& function, const X& x0, Scalar c) {
    const X x = next_to(name, x0, c);
    return run_in(
        x.dtype(), [&](const X& y) { return run(function, y, constant_like(y, c.value())); }, x);
}

template <class X>
X select_by(const X& condition, const X& x0, const X& x1) {
    const PluginFunction& function = plain<"catena.where">();
    if (!condition || !x0 || !x1) return run(function, condition, x0, x1);  // which reports it
    const Array& mask = elements(condition);
    const bool is_mask = mask.body()->meta.dtype.code == CATENA_CODE_BOOL;
    const Dtype dtype = common_dtype(x0.dtype(), x1.dtype());
    // A condition of another dtype, or of uint8, becomes bool in a pass of its own.
    const bool fits = is_mask || (mask.dtype() == dtype && dtype != Dtype::uint8);
    return run(function, fits ? condition : X(mask.astype(Dtype::bool8)), promoted(x0, dtype),
               promoted(x1, dtype));
}

}  // namespace

// less(x0, x1) is greater(x1, x0).
#define CATENA_COMPARISON(NAME, OPERATOR)                                             \
    Array NAME(const Array& x0, const Array& x1) { return catena::OPERATOR(x0, x1); } \
    Array NAME(const Array& x0, Scalar x1) { return catena::OPERATOR(x0, x1); }       \
    Array NAME(Scalar x0, const Array& x1) { return catena::OPERATOR(x0, x1); }
CATENA_COMPARISON(greater, operator>)
CATENA_COMPARISON(greater_equal, operator>=)
CATENA_COMPARISON(less, operator<)
CATENA_COMPARISON(less_equal, operator<=)
#undef CATENA_COMPARISON

#define CATENA_EQUALITY(NAME, FUNCTION)                                                         \
    Array NAME(const Array& x0, const Array& x1) { return compare(plain<FUNCTION>(), x0, x1); } \
    Array NAME(const Array& x0, Scalar x1) { return compare(plain<FUNCTION>(), x0, x1); }       \
    Array NAME(Scalar x0, const Array& x1) { return compare(plain<FUNCTION>(), x1, x0); }
CATENA_EQUALITY(equal, "catena.is_equal")
CATENA_EQUALITY(not_equal, "catena.is_not_equal")
#undef CATENA_EQUALITY

#define CATENA_EXTREME(NAME, FUNCTION)                                                             \
    Variable NAME(const Variable& x0, const Variable& x1) {                                        \
        return extreme_of(plain<FUNCTION>(), x0, x1);                                              \
    }                                                                                              \
    Array NAME(const Array& x0, const Array& x1) { return extreme_of(plain<FUNCTION>(), x0, x1); } \
    Variable NAME(const Variable& x0, Scalar x1) {                                                 \
        return extreme_of(#NAME, plain<FUNCTION>(), x0, x1);                                       \
    }                                                                                              \
    Array NAME(const Array& x0, Scalar x1) { return extreme_of(#NAME, plain<FUNCTION>(), x0, x1); }
CATENA_EXTREME(maximum, "catena.maximum")
CATENA_EXTREME(minimum, "catena.minimum")
#undef CATENA_EXTREME

#define CATENA_WHERE(X)                                                                            \
    X where(const X& condition, const X& x0, const X& x1) { return select_by(condition, x0, x1); } \
    X where(const X& condition, const X& x0, Scalar x1) {                                          \
        const X x = next_to("where", x0, x1);                                                      \
        return select_by(condition, x, constant_like(x, x1.value()));                              \
    }                                                                                              \
    X where(const X& condition, Scalar x0, const X& x1) {                                          \
        const X x = next_to("where", x1, x0);                                                      \
        return select_by(condition, constant_like(x, x0.value()), x);                              \
    }
CATENA_WHERE(Variable)
CATENA_WHERE(Array)
#undef CATENA_WHERE

}  // namespace catena::functions
