// Fully connected layer, on CUDA: products by catena.blas/1. The bias is laid out before the product,
// which is added to it.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "linear.hpp"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Linear> {
    static constexpr bool any_half = false;  // dtypes are passed on

    template <class T>
    static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(1);
        const auto b = call.template x<T>(2);
        const auto y = call.template y<T>(0);
        if (b)
            map(call.queue(), Copy<Stored<T>, Stored<T>, true>(), y.shape,
                {Operand{b.data, b.shape}}, {Result{y.data, call.adds(0)}});
        multiply<T>(call, {x.data, y.dim(0), w.dim(1)}, {w.data, w.dim(0), w.dim(1), true}, y.data,
                    b || call.adds(0));
    }
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != CATENA_PHASE_BACKWARD || !call.wants(2)) return;
        plan.scratch_bytes = sum_scratch<T>(call.template gy<T>(0).shape, rows);
    }
    template <class T>
    static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(1);
        const auto gy = call.template gy<T>(0);
        if (const auto gx = call.template gx<T>(0))
            multiply<T>(call, {gy.data, gy.dim(0), gy.dim(1)}, {w.data, w.dim(0), w.dim(1)},
                        gx.data, call.adds(0));
        if (const auto gw = call.template gx<T>(1))
            multiply<T>(call, {gy.data, gy.dim(0), gy.dim(1), true}, {x.data, x.dim(0), w.dim(1)},
                        gw.data, call.adds(1));
        if (const auto gb = call.template gx<T>(2))
            sum(call.queue(), gy, rows, gb.data, call.adds(2), call.template scratch<void>());
    }

private:
    static bool rows(std::size_t d) { return d == 0; }
};
