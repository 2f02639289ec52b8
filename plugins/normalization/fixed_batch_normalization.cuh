// Normalisation with given statistics, on CUDA.
#pragma once

#include "channels.cuh"
#include "fixed_batch_normalization.hpp"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::FixedBatchNormalization> {
    template <class T, class S>
    static void plan(const auto& call, catena_plan& plan) {
        plan.scratch_bytes = catena::plugins::ChannelScratch::bytes(call.template x<T>(0).shape);
    }
    template <class T, class S>
    static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        if (x.size() == 0) return;
        const catena::plugins::ChannelScratch numbers(call, x.shape);
        const S* const mean = call.template x<S>(3).data;
        numbers.inverse(call, mean, call.template x<S>(4).data, call.template attr<"eps">());
        const auto& of = numbers.of;
        map(call.queue(), catena::plugins::ChannelLine<T, S>(), x.shape,
            {Operand{x.data, x.shape}, of(mean), of(numbers[0]), of(call.template x<T>(1).data),
             of(call.template x<T>(2).data)},
            {Result{call.template y<T>(0).data, call.adds(0)}});
    }
};
