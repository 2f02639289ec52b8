// Comparisons on CUDA. One kernel serves all relations: it is as fast as one for each would be, because
// memory limits both.
#pragma once

#include <catena/plugin/cuda/formula.cuh>

#include "comparisons.hpp"

namespace catena::plugins {

template <class T, class Y>
struct Compare : cuda::Operation<cuda::Types<T, T>, cuda::Types<Y>, cuda::Compute<T>, true> {
    using Value = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(const Value* x, Value* y) const {
        const unsigned holds = x[0] < x[1]    ? less
                               : x[0] > x[1]  ? greater
                               : x[0] == x[1] ? equal
                                              : unordered;
        y[0] = (holds & relations) != 0 ? Value(1) : Value(0);
    }
    std::uint64_t relations;
};

}  // namespace catena::plugins

namespace catena::plugin::cuda {

template <class F>
    requires requires { F::relation; }
struct Kernels<F> {
    template <class T, class Y = T>
    static void forward(const auto& call) {
        const catena_call& raw = call.raw();
        map(call.queue(), catena::plugins::Compare<T, Y>{{}, F::relation}, shape_of(*raw.y[0]),
            {detail::operand(raw.x[0]), detail::operand(raw.x[1])},
            {detail::result(raw.y[0], raw.req[0])});
    }
};

}  // namespace catena::plugin::cuda
