// Mean of squared differences, on CUDA.
#pragma once

#include "labels.cuh"
#include "mean_squared_error.hpp"

namespace catena::plugins {

// The mean's term for a pair of elements, in double, which neither overflows nor loses small terms.
template <class T>
struct SquaredDifference : cuda::Operation<cuda::Types<T, T>, cuda::Types<T>, double> {
    __device__ __forceinline__ void operator()(const double* x, double* y) const {
        const double d = x[0] - x[1];
        y[0] = d * d * share;
    }
    double share;  // 1 / elements
};
// The gradients of x0 and x1; the inputs are x0, x1 and gy.
template <class T>
struct DifferenceGradient
    : cuda::Operation<cuda::Types<T, T, T>, cuda::Types<T, T>, cuda::Compute<T>> {
    using Value = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(const Value* x, Value* y) const {
        y[0] = x[2] * Value(2) / n * (x[0] - x[1]);
        y[1] = -y[0];
    }
    Value n;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::MeanSquaredError> {
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != CATENA_PHASE_FORWARD) return;
        plan.scratch_bytes = sum_scratch(catena::plugins::SquaredDifference<T>(),
                                         call.template x<T>(0).shape, every_axis);
    }
    template <class T>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto a = call.template x<T>(0);
        const auto b = call.template x<T>(1);
        T* const y = call.template y<T>(0).data;
        if (a.size() == 0)  // the mean is NaN
            return call.launch(&mean_kernel<T>, dim3(1), cuda::block, nullptr, std::int64_t{0},
                               std::numeric_limits<double>::quiet_NaN(), y, call.adds(0));
        const Operand in[] = {{a.data, a.shape}, {b.data, b.shape}};
        const SquaredDifference<T> op{{}, 1.0 / static_cast<double>(a.size())};
        sum(call.queue(), op, a.shape, in, 0, every_axis, y, call.adds(0),
            call.template scratch<void>());
    }
    template <class T>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        const auto a = call.template x<T>(0);
        const auto b = call.template x<T>(1);
        const DifferenceGradient<T> op{{}, static_cast<Compute<T>>(a.size())};
        map(call.queue(), op, a.shape,
            {Operand{a.data, a.shape}, {b.data, b.shape}, {call.template gy<T>(0).data, Shape()}},
            {Result{call.template gx<T>(0).data, call.adds(0)},
             {call.template gx<T>(1).data, call.adds(1)}});
    }
};
