// What gradients are scaled by, on CUDA.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "clip_factor.hpp"

namespace catena::plugins {

struct Clipped {
    using In = cuda::Types<double>;
    using Out = cuda::Types<double>;
    using Value = double;
    static constexpr bool walks = false;
    __device__ __forceinline__ void operator()(const double* x, double* y) const {
        y[0] = ClipFactor::factor(x[0], maxnorm);
    }
    double maxnorm;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::ClipFactor> {
    template <class T>
    static void forward(const auto& call) {
        const auto y = call.template y<T>(0);
        map(call.queue(), catena::plugins::Clipped{call.template attr<"maxnorm">()}, y.shape,
            {Operand{call.template x<T>(0).data, y.shape}}, {Result{y.data, call.adds(0)}});
    }
};
