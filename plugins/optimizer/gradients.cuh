// The sum of squares and the clipping factor of gradients, on CUDA.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "gradients.hpp"

namespace catena::plugins {

template <class T>
struct Square : cuda::Operation<cuda::Types<T>, cuda::Types<T>, double> {
    __device__ __forceinline__ void operator()(const double* x, double* y) const {
        y[0] = x[0] * x[0];
    }
};

struct Clipped : cuda::Operation<cuda::Types<double>, cuda::Types<double>, double> {
    __device__ __forceinline__ void operator()(const double* x, double* y) const {
        y[0] = ClipFactor::factor(x[0], maxnorm);
    }
    double maxnorm;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::SumOfSquares> {
    template <class T, class>
    static void plan(const auto& call, catena_plan& plan) {
        plan.scratch_bytes =
            sum_scratch(catena::plugins::Square<T>(), call.template x<T>(0).shape, every_axis);
    }
    template <class T, class S>
    static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const Operand in[] = {{x.data, x.shape}};
        sum(call.queue(), catena::plugins::Square<T>(), x.shape, in, 0, every_axis,
            call.template y<S>(0).data, call.adds(0), call.template scratch<void>());
    }
};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::ClipFactor> {
    template <class T>
    static void forward(const auto& call) {
        const auto y = call.template y<T>(0);
        map(call.queue(), catena::plugins::Clipped{{}, call.template attr<"maxnorm">()}, y.shape,
            {Operand{call.template x<T>(0).data, y.shape}}, {Result{y.data, call.adds(0)}});
    }
};
