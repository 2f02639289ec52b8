// Product of two matrices, on CUDA: all of it is catena.blas/1's.
#pragma once

#include <catena/plugin/cuda/kernels.cuh>

#include "matmul.hpp"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Matmul> : catena::plugins::Matmul {
    static constexpr bool any_half = false;  // dtypes are passed on
};
