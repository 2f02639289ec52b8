// Cross entropy of a softmax against labels, on CUDA.
#pragma once

#include "labels.cuh"
#include "softmax_cross_entropy.hpp"

namespace catena::plugins {

template <class T>
inline constexpr int entropy_width = cuda::pack_width<T>();

// largest and sums of each line, and the losses of each block.
template <class T, class S>
__global__ void __launch_bounds__(cuda::Lines::most_threads)
    entropy_kernel(const cuda::Lines lines, const T* x, bool packed, const Labels t, S* largest,
                   S* sums, bool add, LabelSums* losses) {
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
    LabelSums loss = {0, 0};
    if (line.there && line.lane == 0) {
        S& most = largest[line.index];
        S& sum = sums[line.index];
        most = add ? most + static_cast<S>(all.most) : static_cast<S>(all.most);
        sum = add ? sum + static_cast<S>(all.sum) : static_cast<S>(all.sum);
        const std::int64_t label = t[line.index];
        loss.count = counted(label, t.ignored, lines.length);
        if (loss.count == 1)
            loss.total = static_cast<double>(
                math::log(all.sum) +
                (all.most - cuda::load_as<C>(x[line.base + label * lines.inner])));
    }
    sum_lines(lines, line, loss, losses);
}

// How many labels count: a sum of this.
template <class I>
struct CountedLabel {
    using In = cuda::Types<I>;
    using Out = cuda::Types<I>;
    using Value = double;
    static constexpr bool walks = false;
    __device__ __forceinline__ void operator()(const double* t, double* y) const {
        y[0] = counted(t[0], ignored, classes);
    }
    double ignored;
    std::int64_t classes;
};
// Bytes of scratch for the count, which lies at their beginning, and for counting.
inline constexpr std::uint64_t count_bytes = 64;
template <class I>
std::uint64_t count_scratch(Shape t) {
    const cuda::Operand in[] = {{nullptr, t}};
    return count_bytes + cuda::sum_scratch<CountedLabel<I>>(t, in, every_axis);
}
template <class I>
const double* count_on_device(const auto& call, Tensor<const I> t, std::int64_t classes) {
    auto* const count = call.template scratch<double>();
    const cuda::Operand in[] = {{t.data, t.shape}};
    const auto ignored = static_cast<I>(call.template attr<"ignore_label">());
    cuda::sum(call.queue(), CountedLabel<I>{static_cast<double>(ignored), classes}, t.shape, in, 0,
              every_axis, count, false, reinterpret_cast<char*>(count) + count_bytes);
    return count;
}

// gx = (softmax(x) - one_hot(t)) * gy / count; 0 for ignored labels. gy is null for zero.
template <class T, class S>
__global__ void __launch_bounds__(cuda::Lines::most_threads)
    entropy_gradient_kernel(const cuda::Lines lines, const T* x, bool packed, const Labels t,
                            const S* largest, const S* sums, const T* gy, const double* count,
                            T* gx, bool packed_gx, bool add) {
    using C = cuda::Compute<T>;
    constexpr int w = entropy_width<T>;
    const cuda::Line line(lines);
    const C scale =
        gy != nullptr && *count != 0 ? cuda::load_as<C>(*gy) / static_cast<C>(*count) : C(0);
    const std::int64_t label = line.there ? t[line.index] : t.ignored;
    const bool counts = label != t.ignored && scale != C(0);  // else 0, whatever the scores are
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

// one_hot += 1 at the labels, weight = 1 / count where they count.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    label_weights_kernel(std::int64_t n, std::int64_t inner, std::int64_t classes, const Labels t,
                         const double* count, T* one_hot, T* weight, bool add) {
    using C = cuda::Compute<T>;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * cuda::block;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * cuda::block + threadIdx.x; i < n;
         i += step) {
        const std::int64_t label = t[i];
        const C share = label != t.ignored ? C(1) / static_cast<C>(*count) : C(0);
        weight[i] = add ? cuda::stored_sum(weight[i], share) : cuda::store_as<T>(share);
        if (counted(label, t.ignored, classes) != 1) continue;
        T& place = one_hot[(i / inner * classes + label) * inner + i % inner];
        place = cuda::stored_sum(place, C(1));
    }
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::SoftmaxCrossEntropy> {
    template <class T, class I, class>
    static void plan(const auto& call, catena_plan& plan) {
        using namespace catena::plugins;
        if (call.raw().phase == CATENA_PHASE_FORWARD) {
            plan.scratch_bytes = label_sums_bytes(lines_of<T>(call));
        } else {
            plan.scratch_bytes = count_scratch<I>(shape_of(*call.raw().x[1]));
        }
    }
    template <class T, class I, class S>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        S* const largest = call.template y<S>(1).data;
        const Lines lines = lines_of<T>(call);
        if (t.size() > 0)
            call.launch(&entropy_kernel<T, S>, lines.blocks(), lines.threads, lines, x.data,
                        turns_are_packs<T, entropy_width<T>>(lines, x.data), Labels(call, t),
                        largest, largest + t.size(), call.adds(1),
                        call.template scratch<LabelSums>());
        mean_on_device<T>(call, lines, 0.0);
    }
    template <class T, class I, class S>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        const auto gx = call.template gx<T>(0);
        const S* const largest = call.template y<S>(1).data;
        if (!gx || gx.size() == 0) return;
        const Lines lines = lines_of<T>(call);
        const double* const count = count_on_device<I>(call, t, lines.length);
        call.launch(&entropy_gradient_kernel<T, S>, lines.blocks(), lines.threads, lines, x.data,
                    turns_are_packs<T, entropy_width<T>>(lines, x.data), Labels(call, t), largest,
                    largest + t.size(), call.template gy<T>(0).data, count, gx.data,
                    turns_are_packs<T, entropy_width<T>>(lines, gx.data), call.adds(0));
    }

private:
    template <class T>
    static Lines lines_of(const auto& call) {
        return Lines(Axis(call.template x<T>(0).shape, 1), catena::plugins::entropy_width<T>);
    }
};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::LabelWeights> {
    template <class T, class I>
    static void plan(const auto& call, catena_plan& plan) {
        plan.scratch_bytes = catena::plugins::count_scratch<I>(shape_of(*call.raw().x[1]));
    }
    template <class T, class I>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto t = call.template x<I>(1);
        const auto one_hot = call.template y<T>(0);
        const Axis axis(one_hot.shape, 1);
        const double* const count = count_on_device<I>(call, t, axis.length);
        if (!call.adds(0)) call.zero(one_hot);
        call.launch_for(t.size(), &label_weights_kernel<T>, t.size(), axis.inner, axis.length,
                        Labels(call, t), count, one_hot.data, call.template y<T>(1).data,
                        call.adds(1));
    }
};
