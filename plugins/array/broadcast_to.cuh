// Repetition of a smaller array, and what it repeated summed up again, on CUDA.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "broadcast_to.hpp"

namespace catena::plugins {

template <class T>
void repeat(const auto& call, Tensor<const T> x, Tensor<T> y) {
    cuda::map(call.queue(), cuda::Copy<T, T, true>(), y.shape, {cuda::Operand{x.data, x.shape}},
              {cuda::Result{y.data, call.adds(0)}});
}
template <class T>
void sum_repeats(const auto& call, Tensor<const T> x, Tensor<T> y) {
    cuda::sum(call.queue(), x, cuda::Repeats{x.shape, y.shape}, y.data, call.adds(0),
              call.template scratch<void>());
}
template <class T>
void plan_sum_repeats(Tensor<const T> x, Shape y, catena_plan& plan) {
    plan.scratch_bytes = cuda::sum_scratch<T>(x.shape, cuda::Repeats{x.shape, y});
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::BroadcastTo> {
    template <class T>
    static void forward(const auto& call) {
        catena::plugins::repeat(call, call.template x<T>(0), call.template y<T>(0));
    }
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase == CATENA_PHASE_BACKWARD)
            catena::plugins::plan_sum_repeats(call.template gy<T>(0), call.template gx<T>(0).shape,
                                              plan);
    }
    template <class T>
    static void backward(const auto& call) {
        catena::plugins::sum_repeats(call, call.template gy<T>(0), call.template gx<T>(0));
    }
};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::SumTo> {
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase == CATENA_PHASE_FORWARD)
            catena::plugins::plan_sum_repeats(call.template x<T>(0), call.template y<T>(0).shape,
                                              plan);
    }
    template <class T>
    static void forward(const auto& call) {
        catena::plugins::sum_repeats(call, call.template x<T>(0), call.template y<T>(0));
    }
    template <class T>
    static void backward(const auto& call) {
        catena::plugins::repeat(call, call.template gy<T>(0), call.template gx<T>(0));
    }
};
