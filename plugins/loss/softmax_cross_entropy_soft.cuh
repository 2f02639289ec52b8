// Cross entropy of a softmax against probabilities, on CUDA.
#pragma once

#include "labels.cuh"
#include "softmax_cross_entropy_soft.hpp"

namespace catena::plugins {

// The target of class c with probability t.
template <class T>
__device__ __forceinline__ cuda::Compute<T> soft_target(const TargetsOnDevice<T>& targets, T t,
                                                        std::int64_t c) {
    return (targets.sharp * cuda::load_as<cuda::Compute<T>>(t) + targets.each) * targets.weight(c);
}
// Computes `largest` and `sums` of each line, and its loss.
template <class T, class S>
__global__ void __launch_bounds__(cuda::block)
    soft_entropy_kernel(const cuda::Lines lines, const T* x, const T* t,
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
    C loss = 0;
    for (std::int64_t i = line.lane; i < line.end; i += lines.lanes)
        loss += part_of(soft_target(targets, t[line.at(i)], i),
                        log + (all.most - cuda::load_as<C>(x[line.at(i)])));
    loss = cuda::join_lanes(lines, line, loss, std::plus());
    const bool there = line.there && line.lane == 0;
    if (there) {
        cuda::store(largest[line.index], add, all.most);
        cuda::store(sums[line.index], add, all.sum);
    }
    losses.put(line.index, there, {there ? static_cast<double>(loss) : 0.0, 0.0});
}

template <class T, class S>
struct SoftGradients {
    const T* x;
    const T* t;
    const S* largest;
    const S* sums;
    const T* gy;
    T* gx;
    T* gt;
    std::int64_t each, add, add_t;
    double by;
};
template <class T, class S>
__global__ void __launch_bounds__(cuda::block)
    soft_gradient_kernel(const cuda::Lines lines, const TargetsOnDevice<T> targets,
                         const __grid_constant__ SoftGradients<T, S> p) {
    using C = cuda::Compute<T>;
    const cuda::Line line(lines);
    C total = 0;
    for (std::int64_t i = line.lane; i < line.end; i += lines.lanes)
        total += soft_target(targets, p.t[line.at(i)], i);
    total = cuda::join_lanes(lines, line, total, std::plus());
    if (!line.there) return;
    const auto most = static_cast<C>(p.largest[line.index]);
    const auto sum = static_cast<C>(p.sums[line.index]);
    const C scale = cuda::load_as<C>(p.gy[p.each != 0 ? line.index : 0]) / static_cast<C>(p.by);
    const C log = math::log(sum);
    for (std::int64_t i = line.lane; i < line.end; i += lines.lanes) {
        const std::int64_t at = line.at(i);
        const C x = cuda::load_as<C>(p.x[at]);
        if (p.gx != nullptr)
            cuda::store(p.gx[at], p.add != 0,
                        scale * total / sum * math::exp(x - most) -
                            scale * soft_target(targets, p.t[at], i));
        if (p.gt != nullptr)
            cuda::store(p.gt[at], p.add_t != 0,
                        scale * (targets.sharp * targets.weight(i)) * (log + (most - x)));
    }
}
inline double soft_divisor(const auto& call, const cuda::Lines& lines) {
    const bool mean = call.template attr<"reduce">() == "mean";
    return mean ? static_cast<double>(std::max<std::int64_t>(lines.count, 1)) : 1.0;
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::SoftmaxCrossEntropySoft> {
    template <class T, class>
    static void plan(const auto& call, catena_plan& plan) {
        using namespace catena::plugins;
        if (call.raw().phase == CATENA_PHASE_FORWARD)
            plan.scratch_bytes = label_sums_bytes(Lines(Axis(call.template x<T>(0).shape, 1)));
    }
    template <class T, class S>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const Lines lines(Axis(x.shape, 1));
        S* const largest = call.template y<S>(1).data;
        const TargetsOnDevice<T> targets(call, lines.length,
                                         call.template attr<"label_smoothing">());
        if (x.size() > 0)
            call.launch(&soft_entropy_kernel<T, S>, lines.blocks(), block, lines, x.data,
                        call.template x<T>(1).data, targets, largest, largest + lines.count,
                        call.adds(1), LossesOnDevice<T>(call));
        finish_losses(call, lines.blocks().x, soft_divisor(call, lines), targets,
                      Norms<S>{nullptr, 0, 0});
    }
    template <class T, class S>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const Lines lines(Axis(x.shape, 1));
        if (x.size() == 0) return;
        const S* const largest = call.template y<S>(1).data;
        const SoftGradients<T, S> p = {.x = x.data,
                                       .t = call.template x<T>(1).data,
                                       .largest = largest,
                                       .sums = largest + lines.count,
                                       .gy = call.template gy<T>(0).data,
                                       .gx = call.template gx<T>(0).data,
                                       .gt = call.template gx<T>(1).data,
                                       .each = call.template attr<"reduce">() == "no",
                                       .add = call.adds(0),
                                       .add_t = call.adds(1),
                                       .by = soft_divisor(call, lines)};
        const TargetsOnDevice<T> targets(call, lines.length,
                                         call.template attr<"label_smoothing">());
        call.launch(&soft_gradient_kernel<T, S>, lines.blocks(), block, lines, targets, p);
    }
};
