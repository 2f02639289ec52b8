// Another dtype for the same numbers, on CUDA.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "cast.hpp"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Cast> {
    template <class T, class U>
    static void forward(const auto& call) {
        convert(call, call.template x<T>(0), call.template y<U>(0));
    }
    template <class T, class U>
    requires catena::plugins::is_float<T> && catena::plugins::is_float<U>
    static void backward(const auto& call) {
        if (const auto gy = call.template gy<U>(0)) convert(call, gy, call.template gx<T>(0));
        else if (!call.adds(0)) call.zero(call.template gx<T>(0));
    }

private:
    template <class From, class To>
    static void convert(const auto& call, Tensor<const From> x, Tensor<To> y) {
        map(call.queue(), Copy<From, To>(), y.shape, {Operand{x.data, x.shape}},
            {Result{y.data, call.adds(0)}});
    }
};
