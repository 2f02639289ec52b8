// Reductions and comparisons.
#include "forms.hpp"

namespace catena::python {
namespace {

namespace F = functions;

// Over axes; None: over all, (): over none.
template <class Call>
void add_reduction(Forms& forms, const char* signature, const char* doc, const Call& call) {
    forms(signature, doc, [call](const Variable& x, const Axes& axis, bool keepdims) {
        return axis && axis->empty() ? F::identity(x) : call(x, all_if_none(axis), keepdims);
    });
}

#define CATENA_REDUCTION(NAME, DOC)                         \
    add_reduction(                                          \
        forms, #NAME "(x, axis=None, keepdims=False)", DOC, \
        [](const Variable& x, Ints axis, bool keepdims) { return F::NAME(x, axis, keepdims); });

void add_reductions(Forms& forms) {
    CATENA_REDUCTION(sum, "The sum along axes; None: along all.")
    CATENA_REDUCTION(max, "The largest element along axes; None: along all.")
    CATENA_REDUCTION(min, "The smallest element along axes; None: along all.")
    CATENA_REDUCTION(prod, "The product along axes; None: along all.")
    CATENA_REDUCTION(logsumexp, "The logarithm of the sum of e^x along axes; None: along all.")
    for (const bool largest : {true, false})
        forms(largest ? "argmax(x, axis=None, keepdims=False)"
                      : "argmin(x, axis=None, keepdims=False)",
              largest
                  ? "The index of the largest element along an axis, or of the flattened array."
                  : "The index of the smallest element along an axis, or of the flattened array.",
              [largest](const Variable& x, const std::optional<std::int64_t>& axis, bool keepdims) {
                  const Ints axes = axis ? Ints(*axis) : Ints({});
                  return F::cast(
                      largest ? F::argmax(x, axes, keepdims) : F::argmin(x, axes, keepdims),
                      Dtype::int32);  // as in Chainer
              });
}
#undef CATENA_REDUCTION

#define CATENA_OF_TWO(NAME, X0, X1, DOC)                                                 \
    forms(#NAME "(" X0 ", " X1 ")", DOC, [](const Term& a, const Term& b) {              \
        return of_two(a, b, [](const auto& x, const auto& y) { return F::NAME(x, y); }); \
    });

void add_logic(Forms& forms) {
    CATENA_OF_TWO(maximum, "x1", "x2", "The larger of two elements.")
    CATENA_OF_TWO(minimum, "x1", "x2", "The smaller of two elements.")
    CATENA_OF_TWO(equal, "x0", "x1", "x0 == x1, as bool.")
    CATENA_OF_TWO(not_equal, "x0", "x1", "x0 != x1, as bool.")
    CATENA_OF_TWO(greater, "x0", "x1", "x0 > x1, as bool.")
    CATENA_OF_TWO(greater_equal, "x0", "x1", "x0 >= x1, as bool.")
    CATENA_OF_TWO(less, "x0", "x1", "x0 < x1, as bool.")
    CATENA_OF_TWO(less_equal, "x0", "x1", "x0 <= x1, as bool.")
    CATENA_OF_TWO(pow, "x0", "x1", "x0 to the power of x1.")
    forms("where(condition, x, y)", "x where the condition is not 0, else y.",
          [](const Term& given, const Term& x, const Term& y) {
              const std::optional<Variable>& other = x.variable ? x.variable : y.variable;
              const Variable condition =
                  given.variable
                      ? *given.variable
                      : as_variable(Array::full({}, given.number->value() != 0, Dtype::bool8,
                                                other ? other->device() : Device()));
              return of_two(
                  x, y, [&](const auto& a, const auto& b) { return F::where(condition, a, b); });
          });
}
#undef CATENA_OF_TWO

}  // namespace

void add_math_forms(Forms& forms) {
    add_reductions(forms);
    add_logic(forms);
}

}  // namespace catena::python
