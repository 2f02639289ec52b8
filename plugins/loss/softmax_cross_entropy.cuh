// Cross entropy of a softmax against labels, on CUDA.
#pragma once

#include "labels.cuh"
#include "softmax_cross_entropy.hpp"

namespace catena::plugins {

// Computes `largest` and `sums` of each line, and the sum of losses of each block.
template <class T, class S>
__global__ void __launch_bounds__(cuda::block)
    entropy_kernel(const cuda::Lines lines, const T* x, const Labels t, S* largest, S* sums,
                   bool add, LabelSums* losses) {
    using C = cuda::Compute<T>;
    using Sum = cuda::LogSum<C>;
    const cuda::Line line(lines);
    Sum own = {Sum::lowest(), C(0)};
    for (std::int64_t i = line.lane; i < line.end; i += lines.lanes)
        own.take(cuda::load_as<C>(x[line.at(i)]));
    const Sum all = cuda::join_lanes(lines, line, own, &Sum::join);
    LabelSums loss = {0, 0};
    if (line.there && line.lane == 0) {
        cuda::store(largest[line.index], add, all.most);
        cuda::store(sums[line.index], add, all.sum);
        const std::int64_t label = t[line.index];
        loss.count = counted(label, t.ignored, lines.length);
        if (loss.count == 1)
            loss.total = static_cast<double>(math::log(all.sum) +
                                             (all.most - cuda::load_as<C>(x[line.at(label)])));
    }
    loss = sum_block(loss);
    if (threadIdx.x == 0) losses[blockIdx.x] = loss;
}

// counted() of a label; its sum over all labels is the number of labels that are not ignored.
template <class I>
struct CountedLabel : cuda::Operation<cuda::Types<I>, cuda::Types<I>, double> {
    __device__ __forceinline__ void operator()(const double* t, double* y) const {
        y[0] = counted(t[0], ignored, classes);
    }
    double ignored;
    std::int64_t classes;
};
// Scratch memory: the count in the first count_bytes, then the memory that the sum needs.
inline constexpr std::uint64_t count_bytes = 64;
template <class I>
std::uint64_t count_scratch(Shape t) {
    return count_bytes + cuda::sum_scratch(CountedLabel<I>(), t, cuda::every_axis);
}
template <class I>
const double* count_on_device(const auto& call, Tensor<const I> t, std::int64_t classes) {
    auto* const count = call.template scratch<double>();
    const cuda::Operand in[] = {{t.data, t.shape}};
    const auto ignored = static_cast<I>(call.template attr<"ignore_label">());
    cuda::sum(call.queue(), CountedLabel<I>{{}, static_cast<double>(ignored), classes}, t.shape, in,
              0, cuda::every_axis, count, false, reinterpret_cast<char*>(count) + count_bytes);
    return count;
}

// gx = (softmax(x) - one_hot(t)) * gy / count; 0 for ignored labels.
template <class T, class S>
struct EntropyGradient {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const std::int64_t outer = i / (inner * classes);
        const std::int64_t line = outer * inner + i % inner;
        const std::int64_t label = t[line];
        const C scale = *count != 0 ? cuda::load_as<C>(*gy) / static_cast<C>(*count) : C(0);
        C g = 0;
        if (label != t.ignored && scale != C(0)) {  // else 0, even if scores are inf or NaN
            g = math::exp(cuda::load_as<C>(x[i]) - static_cast<C>(largest[line])) *
                (scale / static_cast<C>(sums[line]));
            if (i / inner % classes == label) g -= scale;
        }
        cuda::store(gx[i], add != 0, g);
    }
    const T* x;
    Labels t;
    const S* largest;
    const S* sums;
    const T* gy;
    const double* count;
    T* gx;
    std::int64_t classes, inner, add;
};

// Adds 1 to one_hot at the labels; sets weight to 1 / count, or to 0 for ignored labels.
template <class T>
struct LabelWeight {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const std::int64_t label = t[i];
        const C share = label != t.ignored ? C(1) / static_cast<C>(*count) : C(0);
        cuda::store(weight[i], add != 0, share);
        if (counted(label, t.ignored, classes) != 1) return;
        cuda::store(one_hot[(i / inner * classes + label) * inner + i % inner], true, C(1));
    }
    Labels t;
    const double* count;
    T* one_hot;
    T* weight;
    std::int64_t classes, inner, add;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::SoftmaxCrossEntropy> {
    template <class T, class I, class>
    static void plan(const auto& call, catena_plan& plan) {
        using namespace catena::plugins;
        if (call.raw().phase == CATENA_PHASE_FORWARD) {
            plan.scratch_bytes = label_sums_bytes(Lines(Axis(call.template x<T>(0).shape, 1)));
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
        const Lines lines(Axis(x.shape, 1));
        if (t.size() > 0)
            call.launch(&entropy_kernel<T, S>, lines.blocks(), block, lines, x.data,
                        Labels(call, t), largest, largest + t.size(), call.adds(1),
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
        const Axis axis(x.shape, 1);
        const EntropyGradient<T, S> rule = {.x = x.data,
                                            .t = Labels(call, t),
                                            .largest = largest,
                                            .sums = largest + t.size(),
                                            .gy = call.template gy<T>(0).data,
                                            .count = count_on_device<I>(call, t, axis.length),
                                            .gx = gx.data,
                                            .classes = axis.length,
                                            .inner = axis.inner,
                                            .add = call.adds(0)};
        each(call.queue(), gx.size(), rule);
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
        const LabelWeight<T> rule = {
            Labels(call, t), count,      one_hot.data, call.template y<T>(1).data,
            axis.length,     axis.inner, call.adds(1)};
        each(call.queue(), t.size(), rule);
    }
};
