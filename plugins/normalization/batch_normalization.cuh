// Normalisation over the minibatch, on CUDA.
#pragma once

#include "batch_normalization.hpp"
#include "channels.cuh"

namespace catena::plugins {

// Inputs: gy, x, mean, inverse deviation.
template <class T, class S>
struct NormalProduct : ChannelOperation<cuda::Types<T, T, S, double>, cuda::Types<T>> {
    __device__ __forceinline__ void operator()(const double* x, double* y) const {
        y[0] = x[0] * ((x[1] - x[2]) * x[3]);
    }
};
// Inputs: sum of gy, sum of gy times the normalized x. Outputs: the gradients of gamma and beta.
template <class T>
struct ChannelGradients : ChannelOperation<cuda::Types<double, double>, cuda::Types<T, T>, false> {
    __device__ __forceinline__ void operator()(const double* x, double* y) const {
        y[0] = x[1];
        y[1] = x[0];
    }
};
// Computes gx. Inputs: gy, x, mean, inverse deviation, gamma, sum of gy, sum of gy * normalized x.
template <class T, class S>
struct NormalGradient
    : ChannelOperation<cuda::Types<T, T, S, double, T, double, double>, cuda::Types<T>> {
    __device__ __forceinline__ void operator()(const double* x, double* y) const {
        const double normal = (x[1] - x[2]) * x[3];
        y[0] = x[4] * x[3] * (x[0] - x[5] * share - normal * (x[6] * share));
    }
    double share;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::BatchNormalization> {
    template <class T, class S>
    static void plan(const auto& call, catena_plan& plan) {
        plan.scratch_bytes = catena::plugins::ChannelScratch::bytes(call.template x<T>(0).shape);
    }
    template <class T, class S>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto mean = call.template y<S>(1);
        const auto var = call.template y<S>(2);
        if (x.size() == 0) {
            zero_unless_added(call, 1, mean);
            zero_unless_added(call, 2, var);
            return;
        }
        const ChannelScratch numbers(call, x.shape);
        const ChannelShape& of = numbers.of;
        const double share = share_of(x.shape);
        numbers.sum(call, ScaledValue<T>{{}, share}, {Operand{x.data, x.shape}}, 0);
        numbers.sum(call, SquaredDeviation<T>{{}, share},
                    {Operand{x.data, x.shape}, of(numbers[0])}, 1);
        map(call.queue(), ChannelStatistics<double, S>{{}, call.template attr<"eps">()}, of.list(),
            {Operand{numbers[0], of.list()}, {numbers[1], of.list()}},
            {Result{mean.data, call.adds(1)}, {var.data, call.adds(2)}, {numbers[2]}});
        map(call.queue(), ChannelLine<T, double>(), x.shape,
            {Operand{x.data, x.shape}, of(numbers[0]), of(numbers[2]),
             of(call.template x<T>(1).data), of(call.template x<T>(2).data)},
            {Result{call.template y<T>(0).data, call.adds(0)}});
    }
    template <class T, class S>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const T* const gamma = call.template x<T>(1).data;
        const S* const mean = call.template y<S>(1).data;
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        const auto ggamma = call.template gx<T>(1);
        const auto gbeta = call.template gx<T>(2);
        if (x.size() == 0) {
            zero_unless_added(call, 1, ggamma);
            zero_unless_added(call, 2, gbeta);
            return;
        }
        const ChannelScratch numbers(call, x.shape);
        const ChannelShape& of = numbers.of;
        numbers.inverse(call, mean, call.template y<S>(2).data, call.template attr<"eps">());
        numbers.sum(call, ScaledValue<T>{{}, 1}, {Operand{gy.data, x.shape}}, 1);
        numbers.sum(call, NormalProduct<T, S>(),
                    {Operand{gy.data, x.shape}, {x.data, x.shape}, of(mean), of(numbers[0])}, 2);
        if (ggamma || gbeta)
            map(call.queue(), ChannelGradients<T>(), of.list(),
                {Operand{numbers[1], of.list()}, {numbers[2], of.list()}},
                {Result{ggamma.data, call.adds(1)}, {gbeta.data, call.adds(2)}});
        if (gx)
            map(call.queue(), NormalGradient<T, S>{{}, share_of(x.shape)}, x.shape,
                {Operand{gy.data, x.shape},
                 {x.data, x.shape},
                 of(mean),
                 of(numbers[0]),
                 of(gamma),
                 of(numbers[1]),
                 of(numbers[2])},
                {Result{gx.data, call.adds(0)}});
    }

private:
    static double share_of(Shape x) {
        return static_cast<double>(x[1]) / static_cast<double>(size_of(x));
    }
};
