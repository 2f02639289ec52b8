// Random numbers that the device draws, from its stream (see catena::seed): the same for any number
// of threads and, up to rounding, on every device. catena::random::uniform() and normal() draw on
// the host, bit-identical on every machine.
#pragma once

#include <catena/functions.hpp>
#include <catena/operators.hpp>

namespace catena::functions {

// New arrays from U[low, high) and from N(mean, stddev^2), by random_uniform() and random_normal();
// an empty Device means Device::current(). They throw DtypeError unless the dtype is floating.
Array uniform(const Shape& shape, double low = 0, double high = 1, Dtype dtype = Dtype::float32,
              Device device = {});
Array normal(const Shape& shape, double mean = 0, double stddev = 1, Dtype dtype = Dtype::float32,
             Device device = {});

// mean + e^(ln_var / 2) * n with n from N(0, 1): a sample with gradients of its parameters, which
// have one shape. Throws ShapeError.
Variable gaussian(const Variable& mean, const Variable& ln_var);
Array gaussian(const Array& mean, const Array& ln_var);

// 1 with probability p, else 0, in the dtype of p and without a gradient.
Variable bernoulli(const Variable& p);
Array bernoulli(const Array& p);

// softmax((log_pi + g) / tau) along an axis with g from the Gumbel distribution: a sample of the
// categorical distribution, relaxed (Jang et al., "Categorical Reparameterization with
// Gumbel-Softmax", 2017). log_pi need not be normalized. tau > 0, else it throws InvalidError.
Variable gumbel_softmax(const Variable& log_pi, double tau = 0.1, int axis = 1);
Array gumbel_softmax(const Array& log_pi, double tau = 0.1, int axis = 1);

}  // namespace catena::functions
