// The kernels that plugin.cpp lists, each file's own.
#pragma once

#include <span>

#include "catena/abi/ext/blas.h"
#include "engine.hpp"

namespace catena_onednn {

extern const std::span<const catena_kernel> convolution_kernels;
extern const std::span<const catena_kernel> pooling_kernels;
extern const std::span<const catena_kernel> normalization_kernels;
extern const catena_blas blas_table;

// A kernel in float32 for version 1 of a function.
constexpr catena_kernel kernel(const char* function, int phase,
                               decltype(catena_kernel::supports) supports,
                               decltype(catena_kernel::plan) plan,
                               decltype(catena_kernel::run) run) {
    return {
        .struct_size = sizeof(catena_kernel),
        .flags = CATENA_KERNEL_ADDS | CATENA_KERNEL_DETERMINISTIC,
        .phase = phase,
        .priority = CATENA_PRIORITY_VENDOR,
        .function = function,
        .version_min = 1,
        .version_max = 1,
        .device = "cpu",
        .isa = "",
        .types = Row<float>::dtypes,
        .n_types = 1,
        .n_saved = 0,
        .variant = nullptr,
        .retain_x = 0,
        .retain_y = 0,
        .supports = supports,
        .plan = plan,
        .run = run,
    };
}

}  // namespace catena_onednn
