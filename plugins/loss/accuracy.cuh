// Share of labels that have the largest score, on CUDA.
#pragma once

#include "accuracy.hpp"
#include "labels.cuh"

namespace catena::plugins {

// As NumPy's argmax: the first of equals; a NaN is larger than all.
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

template <class T>
inline constexpr int hits_width = cuda::pack_width<T>();

// How many labels have the largest score.
template <class T>
__global__ void __launch_bounds__(cuda::Lines::most_threads)
    hits_kernel(const cuda::Lines lines, const T* y, bool packed, const Labels t, LabelSums* sums) {
    using C = cuda::Compute<T>;
    constexpr int w = hits_width<T>;
    __shared__ Largest<C> shared[cuda::Lines::most_threads];
    const cuda::Line line(lines);
    constexpr C lowest = -std::numeric_limits<C>::infinity();
    Largest<C> own = {lowest, std::numeric_limits<std::int64_t>::max()};
    const std::int64_t step = line.step(lines);
    C v[w];
    for (std::int64_t turn = 0; turn < lines.turns; ++turn) {
        const int n = cuda::load_turn<w>(lines, line, y, turn, packed, lowest, v);
        const std::int64_t first = line.first(lines, turn);
        CATENA_UNROLL
        for (int j = 0; j < w; ++j)
            if (j < n) own = Largest<C>::join(own, {v[j], first + j * step});
    }
    const Largest<C> best = cuda::join_lanes(lines, line, own, shared, &Largest<C>::join);
    const std::int64_t label = line.there ? t[line.index] : t.ignored;
    const double count = counted(label, t.ignored, lines.length);
    const double hit = label != t.ignored && label == best.index ? 1.0 : 0.0;
    sum_lines(lines, line, {hit, count}, sums);
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Accuracy> {
    template <class T, class I>
    static void plan(const auto& call, catena_plan& plan) {
        plan.scratch_bytes = catena::plugins::label_sums_bytes(lines_of<T>(call));
    }
    template <class T, class I>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto y = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        const Lines lines = lines_of<T>(call);
        if (t.size() > 0)
            call.launch(&hits_kernel<T>, lines.blocks(), lines.threads, lines, y.data,
                        turns_are_packs<T, hits_width<T>>(lines, y.data), Labels(call, t),
                        call.template scratch<LabelSums>());
        mean_on_device<T>(call, lines,
                          t.size() == 0 ? std::numeric_limits<double>::quiet_NaN() : 0.0);
    }

private:
    template <class T>
    static Lines lines_of(const auto& call) {
        return Lines(Axis(call.template x<T>(0).shape, 1), catena::plugins::hits_width<T>);
    }
};
