// Normalizations as compositions of registered functions.
#include "operands.hpp"

#include <catena/functions.hpp>
#include <catena/functions/normalization.hpp>
#include <catena/functions/reductions.hpp>
#include <catena/operators.hpp>

namespace catena::functions {
namespace of_normalization {
namespace {

template <class X>
void expect_axes(const char* function, const char* what, const X& x, int least) {
    if (expect(function, what, x).shape().ndim() < least)
        fail<ShapeError>("[{}] {}.ndim: expected at least {}, got {}", function, what, least,
                         x.shape().ndim());
}

template <class X>
X by_instance(const X& x, const X& gamma, const X& beta, double eps) {
    expect_axes("instance_normalization", "x", x, 2);
    const std::int64_t channels = x.shape()[1];
    return channels == 0 ? identity(x) : group_normalization(x, channels, gamma, beta, eps);
}

template <class X>
X standardized(const X& W, double eps) {
    expect_axes("weight_standardization", "W", W, 1);
    const Shape shape = W.shape();
    const std::int64_t rows = shape[0];
    if (shape.size() == 0) return W;
    const X flat = reshape(W, {rows, shape.size() / rows});
    return reshape(layer_normalization(flat, {}, {}, eps), catena::Ints(shape));
}

}  // namespace
}  // namespace of_normalization

#define CATENA_NORMALIZATIONS(X)                                                                  \
    X instance_normalization(const X& x, const X& gamma, const X& beta, double eps) {             \
        return of_normalization::by_instance(x, gamma, beta, eps);                                \
    }                                                                                             \
    X normalize(const X& x, double eps, Ints axis) { return x / (norm(x, 2, axis, true) + eps); } \
    X weight_standardization(const X& W, double eps) {                                            \
        return of_normalization::standardized(W, eps);                                            \
    }
CATENA_NORMALIZATIONS(Variable)
CATENA_NORMALIZATIONS(Array)
#undef CATENA_NORMALIZATIONS

}  // namespace catena::functions
