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

// 1 for each label whose score is the largest.
template <class T, class I>
__global__ void __launch_bounds__(cuda::Lines::most_threads)
    hits_kernel(const cuda::Lines lines, const T* y, const I* t, I ignored, double* hits) {
    using C = cuda::Compute<T>;
    __shared__ Largest<C> shared[cuda::Lines::most_threads];
    const cuda::Line line(lines);
    constexpr C lowest = -std::numeric_limits<C>::infinity();
    Largest<C> own = {lowest, std::numeric_limits<std::int64_t>::max()};
    C v[1];
    for (std::int64_t turn = 0; turn < lines.turns; ++turn)
        if (cuda::load_turn<1>(lines, line, y, turn, false, lowest, v) > 0)
            own = Largest<C>::join(own, {v[0], line.first(lines, turn)});
    const Largest<C> best = cuda::join_lanes(lines, line, own, shared, &Largest<C>::join);
    if (!line.there || line.lane != 0) return;
    const I label = t[line.index];
    hits[line.index] = label != ignored && label == best.index ? 1.0 : 0.0;
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Accuracy> {
    template <class T, class I>
    static void plan(const auto& call, catena_plan& plan) {
        plan.scratch_bytes = catena::plugins::LabelScratch::bytes<I>(shape_of(*call.raw().x[1]));
    }
    template <class T, class I>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto y = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        const Lines lines(Axis(y.shape, 1), 1);
        const LabelScratch scratch(call.template scratch<void>(), t.size());
        count_on_device(call, t, lines.length, scratch);
        if (t.size() > 0)
            call.launch(&hits_kernel<T, I>, lines.blocks(), lines.threads, lines, y.data, t.data,
                        static_cast<I>(call.template attr<"ignore_label">()), scratch.terms);
        add_terms_on_device(call, t.shape, scratch);
        const double none = t.size() == 0 ? std::numeric_limits<double>::quiet_NaN() : 0.0;
        call.launch(&mean_kernel<T>, dim3(1), 1, scratch.total, scratch.count, none,
                    call.template y<T>(0).data, call.adds(0));
    }
};
