// Activations as compositions of the functions in <catena/functions.hpp>, which has relu, gelu,
// silu, softplus, elu, mish, hard_sigmoid, clipped_relu, swiglu, log_softmax and others. All are
// differentiable to any order, and throw InvalidError for an empty handle and the errors of the
// functions that they call.
#pragma once

#include <catena/core/variable.hpp>

namespace catena::functions {

#define CATENA_ACTIVATIONS(X)                                                                   \
    /* x sigmoid(beta x). The shape of beta is that of x from axis 1 on, or a prefix of it,   \
       as in Chainer; () is one number for all. Throws ShapeError. */ \
    X swish(const X& x, const X& beta);                                                         \
    /* x, limited to 0 <= y <= 6. */                                                            \
    X relu6(const X& x);                                                                        \
    /* scale elu(x, alpha); the defaults keep mean 0 and variance 1. (Klambauer et al.,       \
       "Self-Normalizing Neural Networks", NeurIPS 2017.) */ \
    X selu(const X& x, double alpha = 1.6732632423543772, double scale = 1.0507009873554805);   \
    /* max(x, 0) + min(alpha (e^(x / alpha) - 1), 0). Throws InvalidError if alpha is 0.      \
       (Barron, 2017.) */ \
    X celu(const X& x, double alpha = 1);                                                       \
    /* relu(x) and relu(-x), joined along an axis. (Shang et al., ICML 2016.) */                \
    X crelu(const X& x, int axis = 1);                                                          \
    /* The largest of each pool_size adjacent elements along an axis. Throws ShapeError if    \
       its extent is not a multiple of pool_size. (Goodfellow et al., ICML 2013.) */ \
    X maxout(const X& x, std::int64_t pool_size, int axis = 1);                                 \
    /* Gated linear units: with a and b the first and the second half of x along an axis, a   \
       sigmoid(b), silu(a) b and gelu(a) b. Throw ShapeError for an odd extent. (Dauphin et   \
       al., 2016; Shazeer, "GLU Variants Improve Transformer", 2020.) */ \
    X glu(const X& x, int axis = -1);                                                           \
    X swiglu(const X& x, int axis = -1);                                                        \
    X geglu(const X& x, int axis = -1);
CATENA_ACTIVATIONS(Variable)
CATENA_ACTIVATIONS(Array)
#undef CATENA_ACTIVATIONS

}  // namespace catena::functions
