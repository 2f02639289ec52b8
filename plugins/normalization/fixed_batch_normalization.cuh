// Normalisation with given statistics, on CUDA.
#pragma once

#include "channels.cuh"
#include "fixed_batch_normalization.hpp"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::FixedBatchNormalization> {
    template <class T, class S>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const ChannelLine<T> line = {.x = x.data,
                                     .gamma = call.template x<T>(1).data,
                                     .beta = call.template x<T>(2).data,
                                     .mean = call.template x<S>(3).data,
                                     .var = call.template x<S>(4).data,
                                     .eps = call.template attr<"eps">()};
        map_channels(call, x.shape, line, call.template y<T>(0).data, call.adds(0));
    }
    template <class T, class S>
    static void plan(const auto& call, catena_plan& plan) {
        using namespace catena::plugins;
        if (call.raw().phase != CATENA_PHASE_BACKWARD || !wants_sums(call)) return;
        const Shape shape = call.template x<T>(0).shape;
        if (size_of(shape) > 0)
            plan.scratch_bytes =
                channel_sums_bytes<ChannelGradients<T>>(ChannelWalk(shape, channel_width<T>));
    }
    template <class T, class S>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        const ChannelGradients<T> sums = {.gy = gy.data,
                                          .x = x.data,
                                          .gamma = call.template x<T>(1).data,
                                          .mean = call.template x<S>(3).data,
                                          .var = call.template x<S>(4).data,
                                          .ggamma = call.template gx<T>(1).data,
                                          .gbeta = call.template gx<T>(2).data,
                                          .gmean = call.template gx<S>(3).data,
                                          .gvar = call.template gx<S>(4).data,
                                          .numbers = nullptr,
                                          .eps = call.template attr<"eps">(),
                                          .share = 0,
                                          .adds = added(call, 5)};
        if (!gy || x.size() == 0) {
            zero_unless_added(call, 0, gx);
            zero_unless_added(call, 1, call.template gx<T>(1));
            zero_unless_added(call, 2, call.template gx<T>(2));
            zero_unless_added(call, 3, call.template gx<S>(3));
            zero_unless_added(call, 4, call.template gx<S>(4));
            return;
        }
        if (wants_sums(call))
            sum_channels(call, ChannelWalk(x.shape, channel_width<T>), sums,
                         call.template scratch<void>());
        if (gx)
            map_channels(
                call, x.shape,
                ChannelLine<T>{.x = gy.data, .gamma = sums.gamma, .var = sums.var, .eps = sums.eps},
                gx.data, call.adds(0));
    }

private:
    static bool wants_sums(const auto& call) {
        return call.wants(1) || call.wants(2) || call.wants(3) || call.wants(4);
    }
};
