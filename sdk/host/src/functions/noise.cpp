// Samples of distributions, on variables and on arrays.
#include "operands.hpp"

#include <catena/functions/logic.hpp>
#include <catena/functions/noise.hpp>

namespace catena::functions {
namespace of_noise {
namespace {

// Uniform numbers for the elements of x. Half precision would round them to few values.
Array uniform_like(const Array& x) {
    return uniform(x.shape(), 0, 1, item_size(x.dtype()) == 2 ? Dtype::float32 : x.dtype(),
                   x.device());
}

template <class X>
X gaussian_of(const X& mean, const X& ln_var) {
    const Array& like = expect("gaussian", "mean", elements(mean));
    const Shape shape = expect("gaussian", "ln_var", elements(ln_var)).shape();
    if (shape != like.shape())
        fail<ShapeError>("[gaussian] ln_var.shape: expected {}, got {}", to_string(like.shape()),
                         to_string(shape));
    return mean + exp(ln_var * 0.5) * normal(shape, 0, 1, like.dtype(), like.device());
}

template <class X>
X gumbel_softmax_of(const X& log_pi, double tau, int axis) {
    if (!(tau > 0)) fail<InvalidError>("[gumbel_softmax] tau: expected more than 0, got {}", tau);
    const Array& like = expect("gumbel_softmax", "log_pi", elements(log_pi));
    const Array u = uniform_like(like);
    // u is a multiple of 2^-24 or 2^-53, so that only 0 has no finite logarithm.
    const double least = u.dtype() == Dtype::float64 ? 0x1p-54 : 0x1p-25;
    const Array noise = -log(-log(maximum(u, least)));
    return softmax((log_pi + noise.astype(like.dtype())) * (1 / tau), axis);
}

}  // namespace
}  // namespace of_noise

Array uniform(const Shape& shape, double low, double high, Dtype dtype, Device device) {
    const using_device scope{device ? device : Device::current()};
    return random_uniform(shape, low, high, dtype).data();
}
Array normal(const Shape& shape, double mean, double stddev, Dtype dtype, Device device) {
    const using_device scope{device ? device : Device::current()};
    return random_normal(shape, mean, stddev, dtype).data();
}

Variable gaussian(const Variable& mean, const Variable& ln_var) {
    return of_noise::gaussian_of(mean, ln_var);
}
Array gaussian(const Array& mean, const Array& ln_var) {
    return of_noise::gaussian_of(mean, ln_var);
}

Variable bernoulli(const Variable& p) { return as_variable(bernoulli(p.data())); }
Array bernoulli(const Array& p) {
    const Array u = of_noise::uniform_like(expect("bernoulli", "p", p));
    return greater(p.astype(u.dtype()), u).astype(p.dtype());
}

Variable gumbel_softmax(const Variable& log_pi, double tau, int axis) {
    return of_noise::gumbel_softmax_of(log_pi, tau, axis);
}
Array gumbel_softmax(const Array& log_pi, double tau, int axis) {
    return of_noise::gumbel_softmax_of(log_pi, tau, axis);
}

}  // namespace catena::functions
