// The kernels that plugin.cpp lists, each file's own.
#pragma once

#include <span>

#include "catena/abi/ext/blas.h"
#include "engine.hpp"

namespace catena_onednn {

extern const std::span<const catena_kernel> convolution_kernels;
extern const std::span<const catena_kernel> pooling_kernels;
extern const std::span<const catena_kernel> batch_normalization_kernels;
extern const std::span<const catena_kernel> local_response_normalization_kernels;
extern const catena_blas blas_table;

// Generates the code of all products, if there is none yet. Throws Error. [any]
void generate_products();

// For kernels that are slower than the portable ones (README.md has the measurements). They run if they
// are pinned, and in tests that compare two implementations.
constexpr int below_portable = CATENA_PRIORITY_PORTABLE - 10;

// A kernel in float32 for version 1 of a function.
constexpr catena_kernel kernel(const char* function, int phase,
                               decltype(catena_kernel::supports) supports,
                               decltype(catena_kernel::plan) plan, decltype(catena_kernel::run) run,
                               int priority = CATENA_PRIORITY_VENDOR,
                               const catena_dtype* types = Row<float>::dtypes) {
    catena_kernel kernel = plain_kernel(function, phase, "cpu", types);
    kernel.name = "oneDNN";
    kernel.priority = priority;
    kernel.supports = supports;
    kernel.plan = plan;
    kernel.run = run;
    return kernel;
}

}  // namespace catena_onednn
