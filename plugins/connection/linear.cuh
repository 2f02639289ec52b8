// Fully connected layer, on CUDA, with products by catena.blas/1.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "linear.hpp"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Linear> : catena::plugins::Linear {
    static constexpr bool any_half = false;  // multiply() needs the exact half type

    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != CATENA_PHASE_BACKWARD || !call.wants(2)) return;
        const Shape gy = call.template gy<T>(0).shape;
        plan.scratch_bytes = sum_scratch<T>(gy, Repeats{gy, call.template gx<T>(2).shape});
    }
};
