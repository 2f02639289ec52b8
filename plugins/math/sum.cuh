// Sum along axes, on CUDA.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "sum.hpp"

namespace catena::plugins {

template <class F, class T>
void sum_integers(const cuda::Call<F>& call, Tensor<const T> x, const Kept& kept, std::int64_t* y) {
    cuda::sum(call.queue(), x, cuda::Repeats{x.shape, kept.shape()}, y, false,
              call.template scratch<void>());
}

}  // namespace catena::plugins

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
