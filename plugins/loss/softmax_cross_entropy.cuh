// Cross entropy of a softmax against labels, on CUDA.
#pragma once

#include "labels.cuh"
#include "softmax_cross_entropy.hpp"

namespace catena::plugins {

template <class T>
inline constexpr int entropy_width = cuda::pack_width<T>();

// largest and sums of each line, and its loss.
template <class T, class I, class S>
__global__ void __launch_bounds__(cuda::Lines::most_threads)
    entropy_kernel(const cuda::Lines lines, const T* x, bool packed, const I* t, I ignored,
                   S* largest, S* sums, bool add, double* losses) {
    using C = cuda::Compute<T>;
    using Sum = cuda::LogSum<C>;
    constexpr int w = entropy_width<T>;
    __shared__ Sum shared[cuda::Lines::most_threads];
    const cuda::Line line(lines);
    Sum own = {Sum::lowest(), C(0)};
    C v[w];
    for (std::int64_t turn = 0; turn < lines.turns; ++turn) {
        cuda::load_turn<w>(lines, line, x, turn, packed, Sum::lowest(), v);
        own.take(v);
    }
    const Sum all = cuda::join_lanes(lines, line, own, shared, &Sum::join);
    if (!line.there || line.lane != 0) return;
    S& most = largest[line.index];
    S& sum = sums[line.index];
    most = add ? most + static_cast<S>(all.most) : static_cast<S>(all.most);
    sum = add ? sum + static_cast<S>(all.sum) : static_cast<S>(all.sum);
    const I label = t[line.index];
    double loss = 0;
    if (label != ignored && label >= 0 && label < lines.length)
        loss = static_cast<double>(
            math::log(all.sum) + (all.most - cuda::load_as<C>(x[line.base + label * lines.inner])));
    losses[line.index] = loss;
}

// gx = (softmax(x) - one_hot(t)) * gy / count; 0 for ignored labels. gy is null for zero.
template <class T, class I, class S>
__global__ void __launch_bounds__(cuda::Lines::most_threads)
    entropy_gradient_kernel(const cuda::Lines lines, const T* x, bool packed, const I* t, I ignored,
                            const S* largest, const S* sums, const T* gy, const double* count,
                            T* gx, bool packed_gx, bool add) {
    using C = cuda::Compute<T>;
    constexpr int w = entropy_width<T>;
    const cuda::Line line(lines);
    const C scale =
        gy != nullptr && *count != 0 ? cuda::load_as<C>(*gy) / static_cast<C>(*count) : C(0);
    const I label = line.there ? t[line.index] : ignored;
    const bool counts = label != ignored && scale != C(0);  // else 0, whatever the scores are
    const C most = counts ? static_cast<C>(largest[line.index]) : C(0);
    const C factor = counts ? scale / static_cast<C>(sums[line.index]) : C(0);
    const std::int64_t step = line.step(lines);
    C v[w];
    for (std::int64_t turn = 0; turn < lines.turns; ++turn) {
        const int n = cuda::load_turn<w>(lines, line, x, turn, packed, C(0), v);
        const std::int64_t first = line.first(lines, turn);
        CATENA_UNROLL
        for (int j = 0; j < w; ++j) {
            const C p = math::exp(v[j] - most) * factor;
            const C g = first + j * step == label ? p - scale : p;
            v[j] = counts ? g : C(0);
        }
        cuda::store_turn(lines, line, gx, turn, packed_gx, n, add, v);
    }
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::SoftmaxCrossEntropy> {
    template <class T, class I, class>
    static void plan(const auto& call, catena_plan& plan) {
        plan.scratch_bytes = catena::plugins::LabelScratch::bytes<I>(shape_of(*call.raw().x[1]));
    }
    template <class T, class I, class S>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        S* const largest = call.template y<S>(1).data;
        const Lines lines(Axis(x.shape, 1), entropy_width<T>);
        const LabelScratch scratch(call.template scratch<void>(), t.size());
        count_on_device(call, t, lines.length, scratch);
        if (t.size() > 0)
            call.launch(&entropy_kernel<T, I, S>, lines.blocks(), lines.threads, lines, x.data,
                        turns_are_packs<T, entropy_width<T>>(lines, x.data), t.data,
                        ignored<I>(call), largest, largest + t.size(), call.adds(1), scratch.terms);
        add_terms_on_device(call, t.shape, scratch);
        call.launch(&mean_kernel<T>, dim3(1), 1, scratch.total, scratch.count, 0.0,
                    call.template y<T>(0).data, call.adds(0));
    }
    template <class T, class I, class S>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        const auto gx = call.template gx<T>(0);
        const S* const largest = call.template y<S>(1).data;
        if (!gx || gx.size() == 0) return;
        const Lines lines(Axis(x.shape, 1), entropy_width<T>);
        const LabelScratch scratch(call.template scratch<void>(), t.size());
        count_on_device(call, t, lines.length, scratch);
        call.launch(&entropy_gradient_kernel<T, I, S>, lines.blocks(), lines.threads, lines, x.data,
                    turns_are_packs<T, entropy_width<T>>(lines, x.data), t.data, ignored<I>(call),
                    largest, largest + t.size(), call.template gy<T>(0).data, scratch.count,
                    gx.data, turns_are_packs<T, entropy_width<T>>(lines, gx.data), call.adds(0));
    }

private:
    template <class I>
    static I ignored(const auto& call) {
        return static_cast<I>(call.template attr<"ignore_label">());
    }
};
