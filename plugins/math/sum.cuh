// Sum along axes, on CUDA.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "sum.hpp"

namespace catena::plugins {

template <class T>
struct AsInt64 : cuda::Operation<cuda::Types<T>, cuda::Types<std::int64_t>, std::int64_t> {
    using Value = std::int64_t;
    __device__ __forceinline__ void operator()(const Value* x, Value* y) const { y[0] = x[0]; }
};
template <class F, class T>
void sum_integers(const cuda::Call<F>& call, Tensor<const T> x, const Kept& kept, std::int64_t* y) {
    const cuda::Operand in[] = {{x.data, x.shape}};
    cuda::sum(call.queue(), AsInt64<T>(), x.shape, in, 0, cuda::Repeats{x.shape, kept.shape()}, y,
              false, call.template scratch<void>());
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
