// Activations as compositions of registered functions.
#include "operands.hpp"

#include <catena/function_forms.hpp>
#include <catena/functions.hpp>
#include <catena/functions/activations.hpp>
#include <catena/functions/shapes.hpp>
#include <catena/operators.hpp>

namespace catena::functions {
namespace of_activations {
namespace {

template <class X>
X swish_of(const X& x, const X& beta) {
    expect("swish", "x", x);
    expect("swish", "beta", beta);
    const Shape shape = x.shape();
    const Shape own = beta.shape();
    const bool fits = own.ndim() == 0 || (own.ndim() < shape.ndim() &&
                                          std::equal(own.begin(), own.end(), shape.begin() + 1));
    if (!fits)
        fail<ShapeError>(
            "[swish] beta.shape: expected the extents of x {} from axis 1 on, or (), got {}",
            to_string(shape), to_string(own));
    if (own.ndim() == 0) return x * sigmoid(x * beta);
    std::vector<std::int64_t> wide(static_cast<std::size_t>(shape.ndim()), 1);
    std::copy(own.begin(), own.end(), wide.begin() + 1);
    return x * sigmoid(x * reshape(beta, wide));
}

template <class X>
X crelu_of(const X& x, int axis) {
    expect("crelu", "x", x);
    return concat(ListOf<X>({relu(x), relu(-x)}), axis_index("crelu", axis, x.shape()));
}

template <class X>
X maxout_of(const X& x, std::int64_t pool_size, int axis) {
    expect("maxout", "x", x);
    const Shape shape = x.shape();
    const int d = axis_index("maxout", axis, shape);
    if (pool_size < 1)
        fail<InvalidError>("[maxout] pool_size: expected a positive number, got {}", pool_size);
    if (shape[d] % pool_size != 0)
        fail<ShapeError>("[maxout] x.shape[{}]: expected a multiple of pool_size {}, got {}", d,
                         pool_size, shape[d]);
    std::vector<std::int64_t> split(shape.begin(), shape.end());
    split[static_cast<std::size_t>(d)] /= pool_size;
    split.insert(split.begin() + d + 1, pool_size);
    return max(reshape(x, split), d + 1);
}

// The halves of x along an axis.
template <class X>
std::vector<X> halves(const char* function, const X& x, int axis) {
    expect(function, "x", x);
    const Shape shape = x.shape();
    const int d = axis_index(function, axis, shape);
    if (shape[d] % 2 != 0)
        fail<ShapeError>("[{}] x.shape[{}]: expected an even extent, got {}", function, d,
                         shape[d]);
    return split_axis(x, 2, d);
}
template <class X>
X celu_of(const X& x, double alpha) {
    if (alpha == 0) throw InvalidError("[celu] alpha: expected a number other than 0, got 0");
    return elu(x, alpha, 1, 1 / alpha);
}

}  // namespace
}  // namespace of_activations

#define CATENA_ACTIVATIONS(X)                                                        \
    X swish(const X& x, const X& beta) { return of_activations::swish_of(x, beta); } \
    X relu6(const X& x) { return clipped_relu(x, 6); }                               \
    X selu(const X& x, double alpha, double scale) { return elu(x, alpha, scale); }  \
    X celu(const X& x, double alpha) { return of_activations::celu_of(x, alpha); }   \
    X crelu(const X& x, int axis) { return of_activations::crelu_of(x, axis); }      \
    X maxout(const X& x, std::int64_t pool_size, int axis) {                         \
        return of_activations::maxout_of(x, pool_size, axis);                        \
    }                                                                                \
    X glu(const X& x, int axis) {                                                    \
        const auto h = of_activations::halves("glu", x, axis);                       \
        return h[0] * sigmoid(h[1]);                                                 \
    }                                                                                \
    X swiglu(const X& x, int axis) {                                                 \
        const auto h = of_activations::halves("swiglu", x, axis);                    \
        return swiglu(h[0], h[1]);                                                   \
    }                                                                                \
    X geglu(const X& x, int axis) {                                                  \
        const auto h = of_activations::halves("geglu", x, axis);                     \
        return gelu(h[0]) * h[1];                                                    \
    }
CATENA_ACTIVATIONS(Variable)
CATENA_ACTIVATIONS(Array)
#undef CATENA_ACTIVATIONS

}  // namespace catena::functions
