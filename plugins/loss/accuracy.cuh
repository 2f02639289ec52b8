// Accuracy: the fraction of labels that have the largest score, on CUDA.
#pragma once

#include "accuracy.hpp"
#include "labels.cuh"

namespace catena::plugins {

// A score and its index, joined as by NumPy's argmax: the first of equals; NaN is the largest.
template <class C>
struct Largest {
    static __device__ __forceinline__ Largest join(const Largest& a, const Largest& b) {
        const bool a_nan = math::isnan(a.value);
        const bool b_nan = math::isnan(b.value);
        const bool equal = a_nan == b_nan && (a_nan || a.value == b.value);
        const bool first = equal ? a.index < b.index : a_nan || (!b_nan && a.value > b.value);
        return first ? a : b;
    }
    C value;
    std::int64_t index;
};

// Counts, per block, the labels that have the largest score and those that are not ignored.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    hits_kernel(const cuda::Lines lines, const T* y, const Labels t, LabelSums* sums) {
    using C = cuda::Compute<T>;
    const cuda::Line line(lines);
    Largest<C> own = {-std::numeric_limits<C>::infinity(),
                      std::numeric_limits<std::int64_t>::max()};
    for (std::int64_t i = line.lane; i < line.end; i += lines.lanes)
        own = Largest<C>::join(own, {cuda::load_as<C>(y[line.at(i)]), i});
    const Largest<C> best = cuda::join_lanes(lines, line, own, &Largest<C>::join);
    const std::int64_t label = line.there ? t[line.index] : t.ignored;
    LabelSums sum = {0, 0};
    if (line.lane == 0)
        sum = {label != t.ignored && label == best.index ? 1.0 : 0.0,
               counted(label, t.ignored, lines.length)};
    sum = sum_block(sum);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Accuracy> {
    template <class T, class I>
    static void plan(const auto& call, catena_plan& plan) {
        plan.scratch_bytes =
            catena::plugins::label_sums_bytes(Lines(Axis(call.template x<T>(0).shape, 1)));
    }
    template <class T, class I>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto y = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        const Lines lines(Axis(y.shape, 1));
        if (t.size() > 0)
            call.launch(&hits_kernel<T>, lines.blocks(), block, lines, y.data, Labels(call, t),
                        call.template scratch<LabelSums>());
        mean_on_device<T>(call, lines,
                          t.size() == 0 ? std::numeric_limits<double>::quiet_NaN() : 0.0);
    }
};
