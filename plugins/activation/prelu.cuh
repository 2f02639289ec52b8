// Rectified linear unit with learned slopes, on CUDA.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "prelu.hpp"

namespace catena::plugins {

// v where x >= 0, v * w where x < 0, NaN where x is NaN.
template <class T>
struct PreluScaled : cuda::Operation<cuda::Types<T, T, T>, cuda::Types<T>, cuda::Compute<T>, true> {
    using Value = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(const Value* in, Value* y) const {
        y[0] = math::where(in[0] >= Value(0), in[1], math::unless_nan(in[0], in[1] * in[2]));
    }
};
// An element's term of its slope's gradient: 0 where x >= 0, else x * gy.
template <class T>
struct PreluNegative : cuda::Operation<cuda::Types<T, T>, cuda::Types<T>, cuda::Compute<T>> {
    using Value = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(const Value* in, Value* y) const {
        y[0] = math::where(in[0] >= Value(0), Value(0), in[0] * in[1]);
    }
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Prelu> {
    template <class T>
    static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        apply<T>(call, x, x, call.template x<T>(1), call.template y<T>(0), call.adds(0));
    }
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != CATENA_PHASE_BACKWARD || !call.wants(1)) return;
        plan.scratch_bytes =
            sum_scratch(catena::plugins::PreluNegative<T>(), call.template x<T>(0).shape,
                        Summed{call.template gx<T>(1).ndim()});
    }
    template <class T>
    static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        const auto gw = call.template gx<T>(1);
        if (gx) apply<T>(call, x, gy, call.template x<T>(1), gx, call.adds(0));
        const Operand in[] = {{x.data, x.shape}, {gy.data, x.shape}};
        if (gw)
            sum(call.queue(), catena::plugins::PreluNegative<T>(), x.shape, in, 0,
                Summed{gw.ndim()}, gw.data, call.adds(1), call.template scratch<void>());
    }

private:
    // Whether W's gradient sums axis d of x: W has the axes 1 to n of x.
    struct Summed {
        bool operator()(std::size_t d) const { return d == 0 || d > n; }
        std::size_t n;
    };
    template <class T>
    static void apply(const auto& call, Tensor<const T> x, Tensor<const T> v, Tensor<const T> w,
                      Tensor<T> y, bool add) {
        std::int64_t beside[CATENA_MAX_NDIM];
        std::fill_n(beside, x.ndim(), 1);
        if (w.ndim() > 0) std::copy(w.shape.begin(), w.shape.end(), beside + 1);
        map(call.queue(), catena::plugins::PreluScaled<T>(), x.shape,
            {Operand{x.data, x.shape}, {v.data, x.shape}, {w.data, Shape(beside, x.ndim())}},
            {Result{y.data, add}});
    }
};
