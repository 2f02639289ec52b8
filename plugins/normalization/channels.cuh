// Operations for the statistics and gradients of the channels of (N, C, ...), on CUDA. They compute
// in double, which neither overflows nor loses small deviations from a large mean.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "channels.hpp"

namespace catena::plugins {

// broadcasts: some inputs have one value per channel.
template <class In, class Out, bool broadcasts = true>
using ChannelOperation = cuda::Operation<In, Out, double, broadcasts>;

template <class T>
struct ScaledValue : ChannelOperation<cuda::Types<T>, cuda::Types<T>, false> {
    __device__ __forceinline__ void operator()(const double* x, double* y) const {
        y[0] = x[0] * share;
    }
    double share;
};
// Inputs: x, mean.
template <class T>
struct SquaredDeviation : ChannelOperation<cuda::Types<T, double>, cuda::Types<T>> {
    __device__ __forceinline__ void operator()(const double* x, double* y) const {
        y[0] = (x[0] - x[1]) * (x[0] - x[1]) * share;
    }
    double share;
};
// Inputs: mean, var. Outputs: mean, var, and 1 / sqrt(var + eps), the inverse deviation.
template <class V, class S>
struct ChannelStatistics : ChannelOperation<cuda::Types<V, V>, cuda::Types<S, S, double>, false> {
    __device__ __forceinline__ void operator()(const double* x, double* y) const {
        y[0] = x[0];
        y[1] = x[1];
        y[2] = 1 / math::sqrt(x[1] + eps);
    }
    double eps;
};
// Inputs: x, mean, inverse deviation, gamma, beta.
template <class T, class M>
struct ChannelLine : ChannelOperation<cuda::Types<T, M, double, T, T>, cuda::Types<T>> {
    __device__ __forceinline__ void operator()(const double* x, double* y) const {
        y[0] = (x[0] - x[1]) * (x[2] * x[3]) + x[4];
    }
};

// Shapes that broadcast an array with one value per channel to x.
struct ChannelShape {
    explicit ChannelShape(Shape x) : n(x.size() - 1), channels(x[1]) {
        std::fill_n(extents, n, 1);
        extents[0] = channels;
    }
    cuda::Operand operator()(const void* data) const { return {data, Shape(extents, n)}; }
    Shape list() const { return Shape(extents, 1); }
    std::size_t n;
    std::int64_t channels;
    std::int64_t extents[CATENA_MAX_NDIM];
};

// Scratch memory: four rows with one number per channel, then the scratch memory of cuda::sum().
struct ChannelScratch {
    static bool summed(std::size_t d) { return d != 1; }
    static std::uint64_t bytes(Shape x) {
        return static_cast<std::uint64_t>(4 * x[1]) * sizeof(double) +
               cuda::sum_scratch<double>(x, summed);
    }
    ChannelScratch(const auto& call, Shape shape)
        : x(shape), of(shape), numbers(call.template scratch<double>()) {}
    double* operator[](int k) const { return numbers + k * of.channels; }
    // Sets row k to the sums of an operation over each channel.
    template <class Op, std::size_t n>
    void sum(const auto& call, const Op& op, const cuda::Operand (&in)[n], int k) const {
        cuda::sum(call.queue(), op, x, in, 0, summed, (*this)[k], false, (*this)[4]);
    }
    // Sets row 0 to the inverse deviations.
    template <class S>
    void inverse(const auto& call, const S* mean, const S* var, double eps) const {
        cuda::map(call.queue(), ChannelStatistics<S, S>{{}, eps}, of.list(),
                  {cuda::Operand{mean, of.list()}, {var, of.list()}},
                  {cuda::Result{}, {}, {(*this)[0]}});
    }

    Shape x;
    ChannelShape of;
    double* numbers;
};

// For an x without elements: zeroes a result for each channel unless the call adds to it.
template <class T>
void zero_unless_added(const auto& call, std::size_t i, Tensor<T> gx) {
    if (gx && !call.adds(i)) call.zero(gx);
}

}  // namespace catena::plugins
