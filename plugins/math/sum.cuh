// Sum along axes, on CUDA.
#pragma once

#include <catena/plugin/cuda/sum_integers.cuh>

#include "sum.hpp"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Sum> : catena::plugins::Sum {
    template <class T, class>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != CATENA_PHASE_FORWARD) return;
        const Shape x = call.template x<T>(0).shape;
        const Kept kept(x, call.template attr<"axis">());
        plan.scratch_bytes = sum_scratch<T>(x, Repeats{x, kept.shape()});
    }
};
