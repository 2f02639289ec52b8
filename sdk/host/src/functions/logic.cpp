// Comparisons, which operators.hpp declares too, and selection: functions/logic.hpp.
#include "promotion.hpp"

#include <catena/functions.hpp>
#include <catena/functions/logic.hpp>

#include <cmath>

namespace catena {
namespace {

// Returns x in a dtype that represents the number c.
Array comparable(const Array& x, Scalar c) {
    if (!x || is_floating(x)) return x;
    const double v = c.value();
    const bool is_long = x.dtype() == Dtype::int64;
    const double limit = is_long ? 0x1p63 : 0x1p31;
    const bool fits = is_long && c.is_integer();
    if (!fits && !(v == std::trunc(v) && v >= -limit && v < limit)) return x.astype(Dtype::float64);
    return is_long ? x : x.astype(Dtype::int32);
}
Array compared_number(const Array& x, Scalar c) {
    if (x && x.dtype() == Dtype::int64 && c.is_integer())
        return Array::from({c.integer()}, {}, x.device());
    return constant_like(x, c.value());
}

Array compare(const PluginFunction& function, const Array& x0, const Array& x1) {
    if (!x0 || !x1) return run(function, x0, x1);  // which reports it
    const Dtype dtype = computed_dtype(common_dtype(x0.dtype(), x1.dtype()));
    return run(function, promoted(x0, dtype), promoted(x1, dtype));
}
Array compare(const PluginFunction& function, const Array& x, Scalar c) {
    const Array number = comparable(x, c);
    return run(function, number, compared_number(number, c));
}
Array compare(const PluginFunction& function, Scalar c, const Array& x) {
    const Array number = comparable(x, c);
    return run(function, compared_number(number, c), number);
}

}  // namespace

// x0 < x1 is x1 > x0.
#define CATENA_COMPARISON(COMPARISON, NAME, FIRST, SECOND)                                         \
    Array COMPARISON(const Array& x0, const Array& x1) {                                           \
        return compare(plain<NAME>(), FIRST, SECOND);                                              \
    }                                                                                              \
    Array COMPARISON(const Array& x0, Scalar x1) { return compare(plain<NAME>(), FIRST, SECOND); } \
    Array COMPARISON(Scalar x0, const Array& x1) { return compare(plain<NAME>(), FIRST, SECOND); }
CATENA_COMPARISON(operator>, "catena.is_greater", x0, x1)
CATENA_COMPARISON(operator>=, "catena.is_greater_equal", x0, x1)
CATENA_COMPARISON(operator<, "catena.is_greater", x1, x0)
CATENA_COMPARISON(operator<=, "catena.is_greater_equal", x1, x0)
CATENA_COMPARISON(functions::greater, "catena.is_greater", x0, x1)
CATENA_COMPARISON(functions::greater_equal, "catena.is_greater_equal", x0, x1)
CATENA_COMPARISON(functions::less, "catena.is_greater", x1, x0)
CATENA_COMPARISON(functions::less_equal, "catena.is_greater_equal", x1, x0)
CATENA_COMPARISON(functions::equal, "catena.is_equal", x0, x1)
CATENA_COMPARISON(functions::not_equal, "catena.is_not_equal", x0, x1)
#undef CATENA_COMPARISON

}  // namespace catena

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

#define CATENA_SELECTION(X)                                                                        \
    X maximum(const X& x0, const X& x1) { return extreme_of(plain<"catena.maximum">(), x0, x1); }  \
    X minimum(const X& x0, const X& x1) { return extreme_of(plain<"catena.minimum">(), x0, x1); }  \
    X maximum(const X& x0, Scalar x1) {                                                            \
        return extreme_of("maximum", plain<"catena.maximum">(), x0, x1);                           \
    }                                                                                              \
    X minimum(const X& x0, Scalar x1) {                                                            \
        return extreme_of("minimum", plain<"catena.minimum">(), x0, x1);                           \
    }                                                                                              \
    X where(const X& condition, const X& x0, const X& x1) { return select_by(condition, x0, x1); } \
    X where(const X& condition, const X& x0, Scalar x1) {                                          \
        const X x = next_to("where", x0, x1);                                                      \
        return select_by(condition, x, constant_like(x, x1.value()));                              \
    }                                                                                              \
    X where(const X& condition, Scalar x0, const X& x1) {                                          \
        const X x = next_to("where", x1, x0);                                                      \
        return select_by(condition, constant_like(x, x0.value()), x);                              \
    }
CATENA_SELECTION(Variable)
CATENA_SELECTION(Array)
#undef CATENA_SELECTION

}  // namespace catena::functions
