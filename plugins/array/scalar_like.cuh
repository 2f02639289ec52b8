// A constant as a 0-d array, on CUDA.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "scalar_like.hpp"

namespace catena::plugins {

template <class T>
struct Filled : cuda::Operation<cuda::Types<>, cuda::Types<T>, cuda::Compute<T>> {
    using Value = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(const Value*, Value* y) const { y[0] = value; }
    Value value;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::ScalarLike> {
    template <class T>
    static void forward(const auto& call) {
        const auto y = call.template y<T>(0);
        const auto value = static_cast<Compute<T>>(call.template attr<"value">());
        const Result out[] = {{y.data, call.adds(0)}};
        map(call.queue(), catena::plugins::Filled<T>{{}, value}, y.shape, nullptr, out);
    }
};
