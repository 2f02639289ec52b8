// Normalised exponentials along an axis, on CUDA: two reads of x, the second mostly from a cache.
#pragma once

#include <catena/plugin/cuda/lines.cuh>

#include "softmax.hpp"

namespace catena::plugins {

template <class T>
inline constexpr int line_width = cuda::pack_width<T>();

template <class T>
__global__ void __launch_bounds__(cuda::Lines::most_threads)
    softmax_kernel(const cuda::Lines lines, const T* x, bool packed_x, T* y, bool packed_y,
                   bool add) {
    using C = cuda::Compute<T>;
    using Sum = cuda::LogSum<C>;
    constexpr int w = line_width<T>;
    __shared__ Sum shared[cuda::Lines::most_threads];
    const cuda::Line line(lines);
    Sum own = {Sum::lowest(), C(0)};
    C v[w];
    for (std::int64_t turn = 0; turn < lines.turns; ++turn) {
        cuda::load_turn<w>(lines, line, x, turn, packed_x, Sum::lowest(), v);
        own.take(v);
    }
    const Sum all = cuda::join_lanes(lines, line, own, shared, &Sum::join);
    const C factor = C(1) / all.sum;
    for (std::int64_t turn = 0; turn < lines.turns; ++turn) {
        const int count = cuda::load_turn<w>(lines, line, x, turn, packed_x, Sum::lowest(), v);
        CATENA_UNROLL
        for (int j = 0; j < w; ++j) v[j] = math::exp(v[j] - all.most) * factor;
        cuda::store_turn(lines, line, y, turn, packed_y, count, add, v);
    }
}

// gx = y * (gy - sum of y * gy).
template <class T>
__global__ void __launch_bounds__(cuda::Lines::most_threads)
    softmax_gradient_kernel(const cuda::Lines lines, const T* y, bool packed_y, const T* gy,
                            bool packed_gy, T* gx, bool packed_gx, bool add) {
    using C = cuda::Compute<T>;
    constexpr int w = line_width<T>;
    __shared__ C shared[cuda::Lines::most_threads];
    const cuda::Line line(lines);
    C dot = 0;
    C v[w];
    C g[w];
    for (std::int64_t turn = 0; turn < lines.turns; ++turn) {
        cuda::load_turn<w>(lines, line, y, turn, packed_y, C(0), v);
        cuda::load_turn<w>(lines, line, gy, turn, packed_gy, C(0), g);
        C part = 0;
        CATENA_UNROLL
        for (int j = 0; j < w; ++j) part += v[j] * g[j];
        dot += part;
    }
    dot = cuda::join_lanes(lines, line, dot, shared, [](C a, C b) { return a + b; });
    for (std::int64_t turn = 0; turn < lines.turns; ++turn) {
        const int count = cuda::load_turn<w>(lines, line, y, turn, packed_y, C(0), v);
        cuda::load_turn<w>(lines, line, gy, turn, packed_gy, C(0), g);
        CATENA_UNROLL
        for (int j = 0; j < w; ++j) v[j] = v[j] * (g[j] - dot);
        cuda::store_turn(lines, line, gx, turn, packed_gx, count, add, v);
    }
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Softmax> {
    template <class T>
    static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        if (y.size() == 0) return;
        const Lines lines = lines_of<T>(call, y.shape);
        call.launch(&catena::plugins::softmax_kernel<T>, lines.blocks(), lines.threads, lines,
                    x.data, packs<T>(lines, x.data), y.data, packs<T>(lines, y.data), call.adds(0));
    }
    template <class T>
    static void backward(const auto& call) {
        const auto y = call.template y<T>(0);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        if (gx.size() == 0) return;
        if (!gy) return call.adds(0) ? void() : call.zero(gx);
        const Lines lines = lines_of<T>(call, y.shape);
        call.launch(&catena::plugins::softmax_gradient_kernel<T>, lines.blocks(), lines.threads,
                    lines, y.data, packs<T>(lines, y.data), gy.data, packs<T>(lines, gy.data),
                    gx.data, packs<T>(lines, gx.data), call.adds(0));
    }

private:
    template <class T>
    static Lines lines_of(const auto& call, Shape shape) {
        const std::size_t axis = axis_index(call.template attr<"axis">(), shape.size());
        return Lines(Axis(shape, axis), catena::plugins::line_width<T>);
    }
    template <class T>
    static bool packs(const Lines& lines, const T* data) {
        return turns_are_packs<T, catena::plugins::line_width<T>>(lines, data);
    }
};
