// Broadcasting to a larger shape, and its adjoint, the sum over broadcast axes, on CUDA.
#pragma once

#include <catena/plugin/cuda/sum_integers.cuh>

#include "broadcast_to.hpp"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::BroadcastTo> : catena::plugins::BroadcastTo {
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != CATENA_PHASE_BACKWARD) return;
        const Shape gy = call.template gy<T>(0).shape;
        plan.scratch_bytes = sum_scratch<T>(gy, Repeats{gy, call.template gx<T>(0).shape});
    }
};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::SumTo> : catena::plugins::SumTo {
    template <class T, class Y>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != CATENA_PHASE_FORWARD) return;
        const Shape x = call.template x<T>(0).shape;
        plan.scratch_bytes = sum_scratch<T>(x, Repeats{x, call.template y<Y>(0).shape});
    }
};
