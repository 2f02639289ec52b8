// Fully connected layer, on CUDA, with products by catena.blas/1. forward() first copies the bias
// to the rows of y, then adds the product.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "linear.hpp"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Linear> : catena::plugins::Linear {
    static constexpr bool any_half = false;  // multiply() needs the exact half type

    template <class T>
    static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(1);
        const auto b = call.template x<T>(2);
        const auto y = call.template y<T>(0);
        if (b) broadcast_copy(call, b.data, b.shape, y.data, y.shape, call.adds(0));
        multiply<T>(call, {x.data, y.count(0, y.ndim() - 1), w.dim(1)},
                    {w.data, w.dim(0), w.dim(1), true}, y.data, b || call.adds(0));
    }
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != CATENA_PHASE_BACKWARD || !call.wants(2)) return;
        const Shape gy = call.template gy<T>(0).shape;
        plan.scratch_bytes = sum_scratch<T>(gy, Repeats{gy, call.template gx<T>(2).shape});
    }
};
