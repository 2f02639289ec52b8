// Dropout, on CUDA: the same draws for the same seed as on the CPU.
#pragma once

#include <catena/plugin/cuda/launch.cuh>
#include <catena/plugin/cuda/pack.cuh>
#include <catena/plugin/draws.hpp>

#include "dropout.hpp"

namespace catena::plugins {

// A thread takes neighbouring blocks of draws, and with them packs of elements, 64 apart (see
// dropout_group).
inline constexpr int dropout_width = 4;

// Where draws begin: here, or in memory of the device.
struct DrawsOnDevice {
    std::uint64_t seed, offset;
    const std::int64_t* where;  // null: here
    std::int64_t any;           // below 0: there as well
};
template <class T>
__global__ void __launch_bounds__(cuda::block)
    dropout_kernel(std::int64_t n, std::int64_t units, const DrawsOnDevice draws,
                   std::uint32_t limit, cuda::Compute<T> scale, const T* x, T* y, bool aligned,
                   bool add, std::int64_t* kept) {
    using C = cuda::Compute<T>;
    constexpr int w = dropout_width;
    static_assert(philox_lanes % w == 0);
    const bool there = draws.where != nullptr;
    const std::uint64_t seed = there ? static_cast<std::uint64_t>(draws.where[0]) : draws.seed;
    const std::uint64_t offset = there ? static_cast<std::uint64_t>(draws.where[1]) : draws.offset;
    const bool any = draws.any < 0 ? draws.where[2] != 0 : draws.any != 0;
    if (kept != nullptr && blockIdx.x == 0 && threadIdx.x == 0) {
        kept[0] = static_cast<std::int64_t>(seed);
        kept[1] = static_cast<std::int64_t>(offset);
        kept[2] = any ? 1 : 0;
    }
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * cuda::block;
    for (std::int64_t u = static_cast<std::int64_t>(blockIdx.x) * cuda::block + threadIdx.x;
         u < units; u += step) {
        const std::int64_t b = u * w;
        Philox4 drawn[w] = {};
        if (any) {
            CATENA_UNROLL
            for (int j = 0; j < w; ++j)
                drawn[j] = philox(seed, offset + static_cast<std::uint64_t>(b + j));
        }
        const std::int64_t first = b / philox_lanes * dropout_group + b % philox_lanes;
        CATENA_UNROLL
        for (int k = 0; k < 4; ++k) {
            const std::int64_t e = first + k * philox_lanes;
            if (e >= n) continue;
            const int count = n - e < w ? static_cast<int>(n - e) : w;
            const bool whole = aligned && count == w;
            C v[w];
            cuda::load<w>(x + e, whole, count, v);
            CATENA_UNROLL
            for (int j = 0; j < w; ++j) {
                const C survivor = any ? v[j] * scale : v[j];
                v[j] = any && drawn[j].v[k] < limit ? C(0) : survivor;
            }
            cuda::store(y + e, whole, count, add, v);
        }
    }
}

template <class T>
void drop_on_device(const auto& call, Tensor<const T> x, const DrawsOnDevice& draws, Tensor<T> y,
                    std::int64_t* kept) {
    using C = cuda::Compute<T>;
    constexpr int w = dropout_width;
    const double ratio = call.template attr<"ratio">();
    const std::int64_t n = y.size();
    const auto units = static_cast<std::int64_t>(dropout_blocks(n)) / w;
    const bool aligned = cuda::is_aligned<T, w>(x.data) && cuda::is_aligned<T, w>(y.data);
    // One block at least, for what is kept.
    call.launch(&dropout_kernel<T>, call.queue().grid(units), cuda::block, n, units, draws,
                dropout_limit(ratio), C(1) / (C(1) - static_cast<C>(ratio)), x.data, y.data,
                aligned, call.adds(0), kept);
}
inline DrawsOnDevice draws_there(const std::int64_t* kept) { return {0, 0, kept, -1}; }

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::ApplyDropout> {
    template <class T, class>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        drop_on_device(call, call.template x<T>(0),
                       draws_there(call.template x<std::int64_t>(1).data), call.template y<T>(0),
                       nullptr);
    }
    template <class T, class>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        drop_on_device(call, call.template gy<T>(0),
                       draws_there(call.template x<std::int64_t>(1).data), call.template gx<T>(0),
                       nullptr);
    }
};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Dropout> {
    template <class T, class>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const bool any = call.train() && call.template attr<"ratio">() != 0;
        DrawsOnDevice draws = {0, 0, nullptr, any ? 1 : 0};
        if (any) {
            const Reserved reserved = reserve_draws(call.context(), dropout_blocks(x.size()));
            draws.seed = reserved.seed;
            draws.offset = reserved.offset;
            draws.where = reserved.where;
        }
        drop_on_device(call, x, draws, call.template y<T>(0),
                       call.template y<std::int64_t>(1).data);
    }
    template <class T, class>
    static void backward(const auto& call) {
        using namespace catena::plugins;
        const auto gx = call.template gx<T>(0);
        if (const auto gy = call.template gy<T>(0))
            drop_on_device(call, gy, draws_there(call.template y<std::int64_t>(1).data), gx,
                           nullptr);
        else if (!call.adds(0)) call.zero(gx);
    }
};
