// Normalisation over the minibatch, on CUDA: x is read once for the statistics and once for y.
#pragma once

#include "batch_normalization.hpp"
#include "channels.cuh"

namespace catena::plugins {

// Mean and sum of squared deviations, of parts that are joined (Chan, Golub and LeVeque, 1983). Values
// are taken less the channel's first, so that a large mean takes no digits from small deviations.
template <class T>
struct ChannelMoments {
    using Input = T;
    using Value = cuda::Compute<T>;
    static constexpr int n_in = 1;
    struct Column {
        Value origin;
    };
    struct State {
        Value mean, squares, count;
    };

    CATENA_FN const T* in(int) const { return x; }
    __device__ __forceinline__ Column column(std::int64_t c) const { return {origin(c)}; }
    template <int b>
    static __device__ __forceinline__ void take(State& s, const Column& c,
                                                const Value (&v)[b][n_in], Value before,
                                                Value weight) {
        Value mean = 0;
        CATENA_UNROLL
        for (int i = 0; i < b; ++i) mean += v[i][0] - c.origin;
        mean *= Value(1) / Value(b);
        Value squares = 0;
        CATENA_UNROLL
        for (int i = 0; i < b; ++i) {
            const Value d = (v[i][0] - c.origin) - mean;
            squares += d * d;
        }
        const Value apart = mean - s.mean;
        s.mean += apart * weight;
        s.squares += squares + apart * apart * (weight * before);
    }
    static __device__ __forceinline__ void close(State& s, int count) {
        s.count = static_cast<Value>(count);
    }
    static __device__ __forceinline__ State join(const State& a, const State& b) {
        if (b.count == 0) return a;
        const Value count = a.count + b.count;
        const Value weight = b.count / count;
        const Value apart = b.mean - a.mean;
        return {a.mean + apart * weight, a.squares + b.squares + apart * apart * (weight * a.count),
                count};
    }
    __device__ __forceinline__ void finish(std::int64_t c, const State& s) const {
        const double centre = static_cast<double>(origin(c)) + static_cast<double>(s.mean);
        const double v = static_cast<double>(s.squares) / static_cast<double>(size);
        const auto rounded = static_cast<Value>(centre);
        mean[c] = (adds & 2) != 0 ? mean[c] + rounded : rounded;
        var[c] = (adds & 4) != 0 ? var[c] + static_cast<Value>(v) : static_cast<Value>(v);
        const double scale = cuda::load_as<double>(gamma[c]) / math::sqrt(v + eps);
        // What rounding takes from the mean goes to the shift.
        const double shift =
            cuda::load_as<double>(beta[c]) - (centre - static_cast<double>(rounded)) * scale;
        numbers[c] = {rounded, static_cast<Value>(scale), static_cast<Value>(shift), Value(0)};
    }

    const T* x;
    const T* gamma;
    const T* beta;
    Value* mean;
    Value* var;
    ChannelNumbers<Value>* numbers;
    std::int64_t plane, size;
    double eps;
    std::uint64_t adds;  // set of ports, as bits

private:
    // 0 in place of an infinity, which would make NaN of all values.
    __device__ __forceinline__ Value origin(std::int64_t c) const {
        const auto first = cuda::load_as<Value>(x[c * plane]);
        return first - first == Value(0) ? first : Value(0);
    }
};

// gx = gamma / sqrt(var + eps) (gy - mean of gy - normal * mean of gy * normal).
template <class T>
struct ChannelNormalGradient {
    using Input = T;
    using Value = cuda::Compute<T>;
    using Numbers = ChannelNumbers<Value>;
    static constexpr int n_in = 2;

    CATENA_FN const T* in(int k) const { return k == 0 ? gy : x; }
    __device__ __forceinline__ Numbers of(std::int64_t c) const { return numbers[c]; }
    static __device__ __forceinline__ Value map(const Numbers& n, const Value (&v)[2]) {
        return ((v[0] - n.shift) - (v[1] - n.centre) * n.slope) * n.scale;
    }

    const T* gy;
    const T* x;
    const Numbers* numbers;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::BatchNormalization> {
    template <class T, class S>
    static void plan(const auto& call, catena_plan& plan) {
        using namespace catena::plugins;
        const Shape shape = call.template x<T>(0).shape;
        if (size_of(shape) == 0) return;
        const ChannelWalk walk(shape, channel_width<T>);
        plan.scratch_bytes =
            numbers_bytes<T>(shape) + (call.raw().phase == CATENA_PHASE_FORWARD
                                           ? channel_sums_bytes<ChannelMoments<T>>(walk)
                                           : channel_sums_bytes<ChannelGradients<T>>(walk));
    }
    template <class T, class S>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        const auto mean = call.template y<S>(1);
        const auto var = call.template y<S>(2);
        if (x.size() == 0) {
            zero_unless_added(call, 1, mean);
            zero_unless_added(call, 2, var);
            return;
        }
        const ChannelWalk walk(x.shape, channel_width<T>);
        auto* const numbers = call.template scratch<ChannelNumbers<S>>();
        const ChannelMoments<T> moments = {.x = x.data,
                                           .gamma = call.template x<T>(1).data,
                                           .beta = call.template x<T>(2).data,
                                           .mean = mean.data,
                                           .var = var.data,
                                           .numbers = numbers,
                                           .plane = walk.plane,
                                           .size = walk.size,
                                           .eps = call.template attr<"eps">(),
                                           .adds = added(call, 3)};
        sum_channels(call, walk, moments, numbers + walk.channels);
        map_channels(call, x.shape, ChannelLine<T>{.x = x.data, .numbers = numbers}, y.data,
                     call.adds(0));
    }
    template <class T, class S>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        const auto ggamma = call.template gx<T>(1);
        const auto gbeta = call.template gx<T>(2);
        if (!gy || x.size() == 0) {
            zero_unless_added(call, 0, gx);
            zero_unless_added(call, 1, ggamma);
            zero_unless_added(call, 2, gbeta);
            return;
        }
        const ChannelWalk walk(x.shape, channel_width<T>);
        auto* const numbers = call.template scratch<ChannelNumbers<S>>();
        const ChannelGradients<T> sums = {.gy = gy.data,
                                          .x = x.data,
                                          .gamma = call.template x<T>(1).data,
                                          .mean = call.template y<S>(1).data,
                                          .var = call.template y<S>(2).data,
                                          .ggamma = ggamma.data,
                                          .gbeta = gbeta.data,
                                          .gmean = nullptr,
                                          .gvar = nullptr,
                                          .numbers = numbers,
                                          .eps = call.template attr<"eps">(),
                                          .share = 1 / static_cast<double>(walk.size),
                                          .adds = added(call, 3)};
        sum_channels(call, walk, sums, numbers + walk.channels);
        if (gx)
            map_channels(call, x.shape, ChannelNormalGradient<T>{gy.data, x.data, numbers}, gx.data,
                         call.adds(0));
    }

private:
    template <class T>
    static std::uint64_t numbers_bytes(Shape shape) {
        return static_cast<std::uint64_t>(shape[1]) *
               sizeof(catena::plugins::ChannelNumbers<Compute<T>>);
    }
};
