// Negative log-likelihood of labels, on CUDA.
#pragma once

#include "labels.cuh"
#include "nll_loss.hpp"

namespace catena::plugins {

// The losses, one for each thread.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    nll_kernel(std::int64_t n, std::int64_t inner, const T* x, const Labels t,
               const TargetsOnDevice<T> targets, const LossesOnDevice<T> losses) {
    using C = cuda::Compute<T>;
    const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * cuda::block + threadIdx.x;
    LabelSums loss = {0, 0};
    if (i < n) {
        const std::int64_t label = t[i];
        loss.count = counted(label, t.ignored, targets.classes);
        loss.total = loss.count;  // 0 or NaN
        if (loss.count == 1) {
            const C weight = targets.weight(label);
            const std::int64_t at = (i / inner * targets.classes + label) * inner + i % inner;
            loss = {-static_cast<double>(weight * cuda::load_as<C>(x[at])),
                    static_cast<double>(weight)};
        }
    }
    losses.put(i, i < n, loss);
}
inline std::int64_t nll_blocks(std::int64_t n) { return (n + cuda::block - 1) / cuda::block; }

template <class T, class S>
struct NllGradient {
    Labels t;
    TargetsOnDevice<T> targets;
    const S* by;
    const T* gy;
    T* gx;
    std::int64_t each, add;
};
// The gradient at each label; NaN, at class 0, if it is out of range. The other gradients are 0.
template <class T, class S>
__global__ void __launch_bounds__(cuda::block)
    nll_gradient_kernel(const cuda::Lines lines, const __grid_constant__ NllGradient<T, S> p) {
    using C = cuda::Compute<T>;
    const cuda::Line line(lines);
    if (!line.there) return;
    const std::int64_t label = p.t[line.index];
    const bool any = label != p.t.ignored;
    const std::int64_t c = label >= 0 && label < p.targets.classes ? label : 0;
    const C g = any ? -p.targets.at(label) * (cuda::load_as<C>(p.gy[p.each != 0 ? line.index : 0]) /
                                              static_cast<C>(*p.by))
                    : C(0);
    for (std::int64_t i = line.lane; i < line.end; i += lines.lanes)
        if (p.add == 0 || (any && i == c))
            cuda::store(p.gx[line.at(i)], p.add != 0, i == c ? g : C(0));
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::NllLoss> {
    template <class T, class I, class>
    static void plan(const auto& call, catena_plan& plan) {
        using namespace catena::plugins;
        if (call.raw().phase == CATENA_PHASE_FORWARD)
            plan.scratch_bytes = static_cast<std::uint64_t>(nll_blocks(size_of(*call.raw().x[1]))) *
                                 sizeof(LabelSums);
    }
    template <class T, class I, class S>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        const Axis axis(x.shape, 1);
        const TargetsOnDevice<T> targets(call, axis.length, 0);
        const std::int64_t blocks = nll_blocks(t.size());
        if (blocks > 0)
            call.launch(&nll_kernel<T>, dim3(static_cast<unsigned>(blocks)), block, t.size(),
                        axis.inner, x.data, Labels(call, t), targets, LossesOnDevice<T>(call));
        finish_losses(call, blocks, divisor_on_device(call, t.shape), targets,
                      norms_of<S>(call, 1));
    }
    template <class T, class I, class S>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        const auto t = call.template x<I>(1);
        const auto gx = call.template gx<T>(0);
        if (!gx || gx.size() == 0) return;
        const Lines lines(Axis(gx.shape, 1));
        const NllGradient<T, S> p = {.t = Labels(call, t),
                                     .targets = {call, lines.length, 0},
                                     .by = call.template y<S>(1).data,
                                     .gy = call.template gy<T>(0).data,
                                     .gx = gx.data,
                                     .each = call.template attr<"reduce">() == "no",
                                     .add = call.adds(0)};
        call.launch(&nll_gradient_kernel<T, S>, lines.blocks(), block, lines, p);
    }
};
