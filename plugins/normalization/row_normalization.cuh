// Normalisation of rows on CUDA. A row's lanes read it several times, after the first from a cache.
#pragma once

#include <catena/plugin/cuda/lines.cuh>
#include <catena/plugin/cuda/reduce.cuh>

#include "row_normalization.hpp"

namespace catena::plugins {

// The arguments of a kernel. T: the dtype of x, S: that of the statistics.
template <class T, class S>
struct RowArguments {
    using C = cuda::Compute<T>;
    RowArguments(const RowView& view, double epsilon)
        : lines(Axis(IntList{view.rows(), view.length()}, 1)),
          by_run(static_cast<std::uint64_t>(std::max<std::int64_t>(view.run, 1))),
          groups(view.groups),
          channels(view.channels),
          eps(epsilon),
          share(view.share()) {}

    // The value of gamma or beta for element i of a row.
    __device__ __forceinline__ C value(const T* list, C missing, std::int64_t row,
                                       std::int64_t i) const {
        if (list == nullptr) return missing;
        const auto channel =
            static_cast<std::int64_t>(by_run.quotient(static_cast<std::uint64_t>(i)));
        return cuda::load_as<C>(list[row % groups * channels + channel]);
    }

    cuda::Lines lines;
    cuda::Divider by_run;
    std::int64_t groups, channels;
    double eps, share;
    const T* x = nullptr;
    const T* gamma = nullptr;
    const T* beta = nullptr;
    const T* gy = nullptr;
    T* out = nullptr;
    S* mean = nullptr;  // null if it is not subtracted
    S* scale = nullptr;
    std::int64_t add_out = 0, add_mean = 0, add_scale = 0;
};

template <class T, class S>
__global__ void __launch_bounds__(cuda::block)
    row_kernel(const __grid_constant__ RowArguments<T, S> p) {
    using C = cuda::Compute<T>;
    const cuda::Line line(p.lines);
    C sum = 0;
    if (p.mean != nullptr)
        for (std::int64_t i = line.lane; i < line.end; i += p.lines.lanes)
            sum += cuda::load_as<C>(p.x[line.at(i)]);
    const C mean = cuda::join_lanes(p.lines, line, sum, std::plus()) * static_cast<C>(p.share);
    C squares = 0;
    for (std::int64_t i = line.lane; i < line.end; i += p.lines.lanes) {
        const C rest = cuda::load_as<C>(p.x[line.at(i)]) - mean;
        squares += rest * rest;
    }
    const C var = cuda::join_lanes(p.lines, line, squares, std::plus()) * static_cast<C>(p.share);
    const C scale = C(1) / math::sqrt(var + static_cast<C>(p.eps));
    for (std::int64_t i = line.lane; i < line.end; i += p.lines.lanes)
        cuda::store(p.out[line.at(i)], p.add_out != 0,
                    (cuda::load_as<C>(p.x[line.at(i)]) - mean) * scale *
                            p.value(p.gamma, C(1), line.index, i) +
                        p.value(p.beta, C(0), line.index, i));
    if (line.lane != 0 || !line.there) return;
    if (p.mean != nullptr) cuda::store(p.mean[line.index], p.add_mean != 0, static_cast<S>(mean));
    cuda::store(p.scale[line.index], p.add_scale != 0, static_cast<S>(scale));
}

template <class T, class S>
__global__ void __launch_bounds__(cuda::block)
    row_gradient_kernel(const __grid_constant__ RowArguments<T, S> p) {
    using C = cuda::Compute<T>;
    const cuda::Line line(p.lines);
    const C mean = p.mean != nullptr && line.there ? static_cast<C>(p.mean[line.index]) : C(0);
    const C scale = line.there ? static_cast<C>(p.scale[line.index]) : C(0);
    C total = 0;
    C product = 0;
    const auto gn_at = [&](std::int64_t i) {
        return cuda::load_as<C>(p.gy[line.at(i)]) * p.value(p.gamma, C(1), line.index, i);
    };
    const auto normal_at = [&](std::int64_t i) {
        return (cuda::load_as<C>(p.x[line.at(i)]) - mean) * scale;
    };
    for (std::int64_t i = line.lane; i < line.end; i += p.lines.lanes) {
        const C gn = gn_at(i);
        if (p.mean != nullptr) total += gn;
        product += gn * normal_at(i);
    }
    const C c1 = cuda::join_lanes(p.lines, line, total, std::plus()) * static_cast<C>(p.share);
    const C c2 = cuda::join_lanes(p.lines, line, product, std::plus()) * static_cast<C>(p.share);
    for (std::int64_t i = line.lane; i < line.end; i += p.lines.lanes)
        cuda::store(p.out[line.at(i)], p.add_out != 0, scale * (gn_at(i) - c1 - normal_at(i) * c2));
}

// Inputs: gy, x, mean, scale. Output: gy times the normalized x.
template <class T, class S>
struct RowProduct
    : cuda::Operation<cuda::Types<T, T, S, S>, cuda::Types<T>, cuda::Compute<T>, true> {
    using Value = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(const Value* x, Value* y) const {
        y[0] = x[0] * ((x[1] - x[2]) * x[3]);
    }
};

template <class F>
struct RowsOnCuda {
    template <class T, class S>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != CATENA_PHASE_BACKWARD) return;
        const auto shape = four(F::template view_of<T>(call));
        if (call.wants(1)) plan.scratch_bytes = sum_scratch(RowProduct<T, S>(), shape, summed);
        if constexpr (F::centred)
            if (call.wants(2))
                plan.scratch_bytes =
                    std::max(plan.scratch_bytes, cuda::sum_scratch<T>(shape, summed));
    }
    template <class T, class S>
    static void forward(const auto& call) {
        auto p = arguments<T, S>(call);
        if (p.lines.count == 0) return;
        if constexpr (F::centred) p.beta = call.template x<T>(2).data;
        p.out = call.template y<T>(0).data;
        p.add_out = call.adds(0);
        p.add_mean = F::centred && call.adds(1);
        p.add_scale = call.adds(F::y_scale);
        call.launch(&row_kernel<T, S>, p.lines.blocks(), cuda::block, p);
    }
    template <class T, class S>
    static void backward(const auto& call) {
        auto p = arguments<T, S>(call);
        const auto gy = call.template gy<T>(0);
        if (const auto gx = call.template gx<T>(0); gx && gx.size() > 0) {
            p.gy = gy.data;
            p.out = gx.data;
            p.add_out = call.adds(0);
            call.launch(&row_gradient_kernel<T, S>, p.lines.blocks(), cuda::block, p);
        }
        const RowView of = F::template view_of<T>(call);
        const auto shape = four(of);
        const std::int64_t rows[] = {of.n, of.groups, 1, 1};
        void* const scratch = call.template scratch<void>();
        const cuda::Operand in[] = {
            {gy.data, shape}, {p.x, shape}, {p.mean, Shape(rows)}, {p.scale, Shape(rows)}};
        if (const auto gx = call.template gx<T>(1))
            cuda::sum(call.queue(), RowProduct<T, S>(), shape, in, 0, summed, gx.data, call.adds(1),
                      scratch);
        if constexpr (F::centred)
            if (const auto gx = call.template gx<T>(2))
                cuda::sum(call.queue(), Tensor<const T>{gy.data, shape}, summed, gx.data,
                          call.adds(2), scratch);
    }

private:
    static std::array<std::int64_t, 4> four(const RowView& of) {
        return {of.n, of.groups, of.channels, of.run};
    }
    static bool summed(std::size_t d) { return d == 0 || d == 3; }

    template <class T, class S>
    static RowArguments<T, S> arguments(const auto& call) {
        RowArguments<T, S> p(F::template view_of<T>(call), call.template attr<"eps">());
        p.x = call.template x<T>(0).data;
        p.gamma = call.template x<T>(1).data;
        if constexpr (F::centred) p.mean = call.template y<S>(1).data;
        p.scale = call.template y<S>(F::y_scale).data;
        return p;
    }
};

}  // namespace catena::plugins

template <class F>
    requires(F::normalizes_rows)
struct catena::plugin::cuda::Kernels<F> : catena::plugins::RowsOnCuda<F> {};
