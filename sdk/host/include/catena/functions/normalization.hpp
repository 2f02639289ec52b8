// Normalizations as compositions of layer_normalization, group_normalization and others in
// <catena/functions.hpp>. All are differentiable to any order, and throw InvalidError for an empty
// handle and the errors of the functions that they call.
#pragma once

#include <catena/core/variable.hpp>
#include <catena/lists.hpp>

namespace catena::functions {

#define CATENA_NORMALIZATIONS(X)                                                                 \
    /* group_normalization() with a group for each channel: x is (N, C, ...). (Ulyanov et al., \
       2016.) */ \
    X instance_normalization(const X& x, const X& gamma = {}, const X& beta = {},                \
                             double eps = 1e-5);                                                 \
    /* x / (norm + eps), with the L2 norm along axes. The gradient of a norm of 0 is 0. */       \
    X normalize(const X& x, double eps = 1e-5, Ints axis = 1);                                   \
    /* (W - mean) / sqrt(var + eps) of the weights W[i] of each output. (Qiao et al.,          \
       "Micro-Batch Training with Batch-Channel Normalization and Weight Standardization",     \
       2019.) */ \
    X weight_standardization(const X& W, double eps = 1e-5);
CATENA_NORMALIZATIONS(Variable)
CATENA_NORMALIZATIONS(Array)
#undef CATENA_NORMALIZATIONS

}  // namespace catena::functions
