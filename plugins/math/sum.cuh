// Sum along axes, on CUDA.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "sum.hpp"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Sum> {
    using Kept = catena::plugins::Sum::Kept;

    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != CATENA_PHASE_FORWARD) return;
        const Shape x = call.template x<T>(0).shape;
        const Kept kept(x, call.template attr<"axis">());
        plan.scratch_bytes = sum_scratch<T>(x, [&](std::size_t d) { return kept.summed(d); });
    }
    template <class T>
    static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const Kept kept(x.shape, call.template attr<"axis">());
        sum(
            call.queue(), x, [&](std::size_t d) { return kept.summed(d); },
            call.template y<T>(0).data, call.adds(0), call.template scratch<void>());
    }
    template <class T>
    static void backward(const auto& call) {
        const auto gx = call.template gx<T>(0);
        const Kept kept(gx.shape, call.template attr<"axis">());
        map(call.queue(), Copy<T, T, true>(), gx.shape,
            {Operand{call.template gy<T>(0).data, kept.shape()}}, {Result{gx.data, call.adds(0)}});
    }
};
