// Cross entropy of a softmax against labels, on CUDA.
#pragma once

#include "labels.cuh"
#include "softmax_cross_entropy.hpp"

namespace catena::plugins {

// Computes `largest` and `sums` of each line, and its loss.
template <class T, class S>
__global__ void __launch_bounds__(cuda::block)
    entropy_kernel(const cuda::Lines lines, const T* x, const Labels t,
                   const TargetsOnDevice<T> targets, S* largest, S* sums, bool add,
                   const LossesOnDevice<T> losses) {
    using C = cuda::Compute<T>;
    using Sum = cuda::LogSum<C>;
    const cuda::Line line(lines);
    Sum own = {Sum::lowest(), C(0)};
    for (std::int64_t i = line.lane; i < line.end; i += lines.lanes)
        own.take(cuda::load_as<C>(x[line.at(i)]));
    const Sum all = cuda::join_lanes(lines, line, own, &Sum::join);
    const C log = math::log(all.sum);
    C rest = 0;
    if (targets.each != C(0)) {
        for (std::int64_t i = line.lane; i < line.end; i += lines.lanes)
            rest += targets.everywhere(i) * (log + (all.most - cuda::load_as<C>(x[line.at(i)])));
        rest = cuda::join_lanes(lines, line, rest, std::plus());
    }
    LabelSums loss = {0, 0};
    const bool there = line.there && line.lane == 0;
    if (there) {
        cuda::store(largest[line.index], add, all.most);
        cuda::store(sums[line.index], add, all.sum);
        const std::int64_t label = t[line.index];
        loss.count = counted(label, t.ignored, lines.length);
        if (loss.count == 1) {
            loss.count = static_cast<double>(targets.weight(label));
            const C own_loss = log + (all.most - cuda::load_as<C>(x[line.at(label)]));
            loss.total = static_cast<double>(targets.at(label) * own_loss + rest);
        } else {
            loss.total = loss.count;  // 0 or NaN
        }
    }
    losses.put(line.index, there, loss);
}

template <class T, class S>
struct EntropyGradient {
    const T* x;
    Labels t;
    TargetsOnDevice<T> targets;
    const S* largest;
    const S* sums;
    const S* norms;
    const T* gy;
    T* gx;
    std::int64_t each, add;
};
// gx = (softmax(x) * sum of q - q) * gy / norms[0]; 0 for ignored labels.
template <class T, class S>
__global__ void __launch_bounds__(cuda::block)
    entropy_gradient_kernel(const cuda::Lines lines,
                            const __grid_constant__ EntropyGradient<T, S> p) {
    using C = cuda::Compute<T>;
    const cuda::Line line(lines);
    if (!line.there) return;
    const std::int64_t label = p.t[line.index];
    const C scale =
        cuda::load_as<C>(p.gy[p.each != 0 ? line.index : 0]) / static_cast<C>(p.norms[0]);
    const bool any = label != p.t.ignored && scale != C(0);  // else 0, even if x is inf or NaN
    const C at = p.targets.at(label);
    const C by = scale * (at + static_cast<C>(p.norms[1])) / static_cast<C>(p.sums[line.index]);
    const auto most = static_cast<C>(p.largest[line.index]);
    for (std::int64_t i = line.lane; i < line.end; i += lines.lanes) {
        C g = 0;
        if (any) {
            g = math::exp(cuda::load_as<C>(p.x[line.at(i)]) - most) * by;
            if (p.targets.each != C(0)) g -= scale * p.targets.everywhere(i);
            if (i == label) g -= scale * at;
        }
        cuda::store(p.gx[line.at(i)], p.add != 0, g);
    }
}

// The targets of each label; NaN if it is out of range.
template <class T>
struct LabelTarget {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const std::int64_t label = t[i / (inner * targets.classes) * inner + i % inner];
        const std::int64_t c = i / inner % targets.classes;
        C value = 0;
        if (label != t.ignored) {
            const C at = targets.at(label);
            value = targets.everywhere(c) + (c == label || at != at ? at : C(0));
        }
        cuda::store(q[i], add != 0, value);
    }
    Labels t;
    TargetsOnDevice<T> targets;
    T* q;
    std::int64_t inner, add;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::SoftmaxCrossEntropy> {
    template <class T, class I, class>
    static void plan(const auto& call, catena_plan& plan) {
        using namespace catena::plugins;
        if (call.raw().phase == CATENA_PHASE_FORWARD)
            plan.scratch_bytes = label_sums_bytes(Lines(Axis(call.template x<T>(0).shape, 1)));
    }
    template <class T, class I, class S>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        S* const largest = call.template y<S>(1).data;
        const Lines lines(Axis(x.shape, 1));
        const TargetsOnDevice<T> targets(call, lines.length,
                                         call.template attr<"label_smoothing">());
        if (t.size() > 0)
            call.launch(&entropy_kernel<T, S>, lines.blocks(), block, lines, x.data,
                        Labels(call, t), targets, largest, largest + t.size(), call.adds(1),
                        LossesOnDevice<T>(call));
        finish_losses(call, lines.blocks().x, divisor_on_device(call, t.shape), targets,
                      norms_of<S>(call, 2));
    }
    template <class T, class I, class S>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        const auto gx = call.template gx<T>(0);
        const S* const largest = call.template y<S>(1).data;
        if (!gx || gx.size() == 0) return;
        const Lines lines(Axis(x.shape, 1));
        const EntropyGradient<T, S> p = {
            .x = x.data,
            .t = Labels(call, t),
            .targets = {call, lines.length, call.template attr<"label_smoothing">()},
            .largest = largest,
            .sums = largest + t.size(),
            .norms = call.template y<S>(2).data,
            .gy = call.template gy<T>(0).data,
            .gx = gx.data,
            .each = call.template attr<"reduce">() == "no",
            .add = call.adds(0)};
        call.launch(&entropy_gradient_kernel<T, S>, lines.blocks(), block, lines, p);
    }
};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::LabelTargets> {
    template <class T, class I>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto q = call.template y<T>(0);
        const Axis axis(q.shape, 1);
        const LabelTarget<T> rule = {
            .t = Labels(call, call.template x<I>(1)),
            .targets = {call, axis.length, call.template attr<"label_smoothing">()},
            .q = q.data,
            .inner = axis.inner,
            .add = call.adds(0)};
        each(call.queue(), q.size(), rule);
    }
};
