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
        scale<T, S>(call, numbers, x.data, mean, call.template x<T>(2).data,
                    call.template y<T>(0).data);
    }
    template <class T, class S>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        if (x.size() == 0) {
            zero_unless_added(call, 1, call.template gx<T>(1));
            zero_unless_added(call, 2, call.template gx<T>(2));
            zero_unless_added(call, 3, call.template gx<S>(3));
            zero_unless_added(call, 4, call.template gx<S>(4));
            return;
        }
        const ChannelScratch numbers(call, x.shape);
        const Shape list = numbers.of.list();
        const S* const mean = call.template x<S>(3).data;
        numbers.inverse(call, mean, call.template x<S>(4).data, call.template attr<"eps">());
        if (call.wants(1) || call.wants(2) || call.wants(3) || call.wants(4)) {
            numbers.sums(call, gy.data, x.data, mean);
            map(call.queue(), ChannelGradients<T, S>(), list,
                {Operand{numbers[1], list},
                 {numbers[2], list},
                 {numbers[0], list},
                 {call.template x<T>(1).data, list}},
                {result<T>(call, 1), result<T>(call, 2), result<S>(call, 3), result<S>(call, 4)});
        }
        if (gx) scale<T, S>(call, numbers, gy.data, nullptr, nullptr, gx.data);
    }

private:
    template <class T>
    static Result result(const auto& call, std::size_t i) {
        T* const data = call.template gx<T>(i).data;
        return {data, data != nullptr && call.adds(i)};
    }
    // Sets y to (x - mean) * gamma * row 0 of `numbers` + beta. A null mean or beta counts as 0.
    template <class T, class S>
    static void scale(const auto& call, const catena::plugins::ChannelScratch& numbers, const T* x,
                      const S* mean, const T* beta, T* y) {
        const auto& of = numbers.of;
        map(call.queue(), catena::plugins::ChannelLine<T, S>(), numbers.x,
            {Operand{x, numbers.x}, of(mean), of(numbers[0]), of(call.template x<T>(1).data),
             of(beta)},
            {Result{y, call.adds(0)}});
    }
};
