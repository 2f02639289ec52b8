// Reductions, comparisons, products and activations.
#include "forms.hpp"

namespace catena::python {
namespace {

namespace F = functions;
using Ints64 = std::vector<std::int64_t>;

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
    forms("average(x, axis=None, weights=None, keepdims=False)",
          "The mean along axes; with weights, sum(x * weights) / sum(weights).",
          [](const Variable& x, const Axes& axis, const std::optional<Variable>& weights,
             bool keepdims) {
              if (axis && axis->empty()) return F::identity(x);
              if (!weights) return F::mean(x, all_if_none(axis), keepdims);
              return F::average(x, all_if_none(axis), *weights, keepdims);
          });
    forms("std(x, axis=None, keepdims=False, ddof=0)", "The standard deviation along axes.",
          [](const Variable& x, const Axes& axis, bool keepdims, std::int64_t ddof) {
              return F::std(x, all_if_none(axis), keepdims, ddof);
          });
    forms("norm(x, ord=2, axis=None, keepdims=False)",
          "The norm of the elements along axes as a vector; ord: 1, 2 or infinity.",
          [](const Variable& x, double ord, const Axes& axis, bool keepdims) {
              return F::norm(x, ord, all_if_none(axis), keepdims);
          });
    forms("sort(x, axis=-1, descending=False)", "The elements in order along an axis.",
          [](const Variable& x, std::int64_t axis, bool descending) {
              return F::sort(x, axis, descending);
          });
    forms("argsort(x, axis=-1, descending=False)",
          "The indices of the elements in order along an axis, as int64.",
          [](const Variable& x, std::int64_t axis, bool descending) {
              return F::argsort(x, axis, descending);
          });
}
#undef CATENA_REDUCTION

#define CATENA_OF_TWO(NAME, X0, X1, DOC)                                                 \
    forms(#NAME "(" X0 ", " X1 ")", DOC, [](const Term& a, const Term& b) {              \
        return of_two(a, b, [](const auto& x, const auto& y) { return F::NAME(x, y); }); \
    });
#define CATENA_OF_ONE(NAME, DOC) \
    forms(#NAME "(x)", DOC, [](const Variable& x) { return F::NAME(x.data()); });

void add_logic(Forms& forms) {
    CATENA_OF_TWO(maximum, "x1", "x2", "The larger of two elements.")
    CATENA_OF_TWO(minimum, "x1", "x2", "The smaller of two elements.")
    CATENA_OF_TWO(equal, "x0", "x1", "x0 == x1, as bool.")
    CATENA_OF_TWO(not_equal, "x0", "x1", "x0 != x1, as bool.")
    CATENA_OF_TWO(greater, "x0", "x1", "x0 > x1, as bool.")
    CATENA_OF_TWO(greater_equal, "x0", "x1", "x0 >= x1, as bool.")
    CATENA_OF_TWO(less, "x0", "x1", "x0 < x1, as bool.")
    CATENA_OF_TWO(less_equal, "x0", "x1", "x0 <= x1, as bool.")
    CATENA_OF_TWO(logical_and, "x0", "x1", "Whether both are not 0, as bool.")
    CATENA_OF_TWO(logical_or, "x0", "x1", "Whether one of them is not 0, as bool.")
    CATENA_OF_TWO(logical_xor, "x0", "x1", "Whether exactly one of them is not 0, as bool.")
    CATENA_OF_TWO(pow, "x0", "x1", "x0 to the power of x1.")
    CATENA_OF_ONE(logical_not, "Whether the elements are 0, as bool.")
    CATENA_OF_ONE(isnan, "Whether the elements are NaN, as bool.")
    CATENA_OF_ONE(isinf, "Whether the elements are infinite, as bool.")
    CATENA_OF_ONE(isfinite, "Whether the elements are finite, as bool.")
    forms("isclose(x0, x1, rtol=1e-5, atol=1e-8, equal_nan=False)",
          "Whether |x0 - x1| <= atol + rtol |x1|, as bool.",
          [](const Variable& x0, const Variable& x1, double rtol, double atol, bool equal_nan) {
              return F::isclose(x0.data(), x1.data(), rtol, atol, equal_nan);
          });
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
#undef CATENA_OF_ONE

void add_products(Forms& forms) {
    forms("_batch_matmul(a, b, transa=False, transb=False)",
          "The products of pairs of matrices. (B, n) is a batch of columns.",
          [](const Variable& a, const Variable& b, bool transa, bool transb) {
              return F::batch_matmul(a, b, transa, transb);
          });
    forms("_tensordot_last(a, b, axes)", "Sums over the last axes of a and the first ones of b.",
          [](const Variable& a, const Variable& b, int axes) { return F::tensordot(a, b, axes); });
    forms("_tensordot_axes(a, b, axes_a, axes_b)", "Sums over pairs of axes.",
          [](const Variable& a, const Variable& b, const Ints64& axes_a, const Ints64& axes_b) {
              return F::tensordot(a, b, axes_a, axes_b);
          });
    forms("_einsum(subscripts, operands)", "Sums of products by numpy.einsum's subscripts.",
          [](std::string_view subscripts, const Variables& operands) {
              return F::einsum(subscripts, operands);
          });
}

void add_activations(Forms& forms) {
    forms("swish(x, beta)", "x sigmoid(beta x). beta has the shape of x from axis 1 on, or ().",
          [](const Variable& x, const Variable& beta) { return F::swish(x, beta); });
    forms("relu6(x)", "x, limited to 0 to 6.", [](const Variable& x) { return F::relu6(x); });
    forms(
        "selu(x, alpha=1.6732632423543772848170429916717, "
        "scale=1.0507009873554804934193349852946)",
        "scale elu(x, alpha).",
        [](const Variable& x, double alpha, double scale) { return F::selu(x, alpha, scale); });
    forms("celu(x, alpha=1.0)", "max(x, 0) + min(alpha (e^(x / alpha) - 1), 0).",
          [](const Variable& x, double alpha) { return F::celu(x, alpha); });
    forms("crelu(x, axis=1)", "relu(x) and relu(-x), joined along an axis.",
          [](const Variable& x, int axis) { return F::crelu(x, axis); });
    forms("maxout(x, pool_size, axis=1)",
          "The largest of each pool_size adjacent elements along an axis.",
          [](const Variable& x, std::int64_t pool_size, int axis) {
              return F::maxout(x, pool_size, axis);
          });
    forms("glu(x, axis=-1)", "a sigmoid(b), with the halves a and b of x along an axis.",
          [](const Variable& x, int axis) { return F::glu(x, axis); });
    forms("geglu(x, axis=-1)", "gelu(a) b, with the halves a and b of x along an axis.",
          [](const Variable& x, int axis) { return F::geglu(x, axis); });
    forms("swiglu(a, b=None, axis=-1)",
          "silu(a) b; without b, a and b are the halves of `a` along an axis.",
          [](const Variable& a, const std::optional<Variable>& b, int axis) {
              return b ? F::swiglu(a, *b) : F::swiglu(a, axis);
          });
}

}  // namespace

void add_math_forms(Forms& forms) {
    add_reductions(forms);
    add_logic(forms);
    add_products(forms);
    add_activations(forms);
}

}  // namespace catena::python
