// Activations as compositions of registered functions.
#include <catena/fail.hpp>
#include <catena/functions.hpp>
#include <catena/functions/activations.hpp>
#include <catena/functions/shapes.hpp>
#include <catena/operators.hpp>

namespace catena::functions {
namespace of_activations {
namespace {

template <class X>
void expect_array(const char* function, const char* what, const X& x) {
    if (!x) fail<InvalidError>("[{}] {}: expected an array, got an empty handle", function, what);
}
// An axis of x as an index.
int index_of(const char* function, const Shape& shape, int axis) {
    const int n = shape.ndim();
    if (axis < -n || axis >= n)
        fail<ShapeError>("[{}] axis: expected one of {}, got {}", function, to_string(shape), axis);
    return axis < 0 ? axis + n : axis;
}

template <class X>
X swish_of(const X& x, const X& beta) {
    expect_array("swish", "x", x);
    expect_array("swish", "beta", beta);
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
    expect_array("crelu", "x", x);
    return concat(ListOf<X>({relu(x), relu(-x)}), index_of("crelu", x.shape(), axis));
}

template <class X>
X maxout_of(const X& x, std::int64_t pool_size, int axis) {
    expect_array("maxout", "x", x);
    const Shape shape = x.shape();
    const int d = index_of("maxout", shape, axis);
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
std::array<X, 2> halves(const char* function, const X& x, int axis) {
    expect_array(function, "x", x);
    const Shape shape = x.shape();
    const int d = index_of(function, shape, axis);
    if (shape[d] % 2 != 0)
        fail<ShapeError>("[{}] x.shape[{}]: expected an even extent, got {}", function, d,
                         shape[d]);
    std::vector<std::int64_t> begin(static_cast<std::size_t>(d) + 1, 0);
    std::vector<std::int64_t> end(shape.begin(), shape.begin() + d + 1);
    const std::int64_t half = shape[d] / 2;
    end.back() = half;
    const X a = get_item(x, begin, end);
    begin.back() = half;
    end.back() = 2 * half;
    return {a, get_item(x, begin, end)};
}

}  // namespace
}  // namespace of_activations

#define CATENA_ACTIVATIONS(X)                                                        \
    X swish(const X& x, const X& beta) { return of_activations::swish_of(x, beta); } \
    X relu6(const X& x) { return clipped_relu(x, 6); }                               \
    X selu(const X& x, double alpha, double scale) { return elu(x, alpha, scale); }  \
    X celu(const X& x, double alpha) { return elu(x, alpha, 1, 1 / alpha); }         \
    X crelu(const X& x, int axis) { return of_activations::crelu_of(x, axis); }      \
    X maxout(const X& x, std::int64_t pool_size, int axis) {                         \
        return of_activations::maxout_of(x, pool_size, axis);                        \
    }                                                                                \
    X glu(const X& x, int axis) {                                                    \
        const auto [a, b] = of_activations::halves("glu", x, axis);                  \
        return a * sigmoid(b);                                                       \
    }                                                                                \
    X swiglu(const X& x, int axis) {                                                 \
        const auto [a, b] = of_activations::halves("swiglu", x, axis);               \
        return swiglu(a, b);                                                         \
    }                                                                                \
    X geglu(const X& x, int axis) {                                                  \
        const auto [a, b] = of_activations::halves("geglu", x, axis);                \
        return gelu(a) * b;                                                          \
    }
CATENA_ACTIVATIONS(Variable)
CATENA_ACTIVATIONS(Array)
#undef CATENA_ACTIVATIONS

}  // namespace catena::functions
