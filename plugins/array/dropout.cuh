// Dropout, on CUDA: draws the same random numbers as the CPU for the same seed and offset.
#pragma once

#include <catena/plugin/cuda/draws.cuh>
#include <catena/plugin/cuda/elementwise.cuh>

#include "dropout.hpp"

namespace catena::plugins {

// Draws block b of random numbers, which serves four elements: see dropout_group.
template <class T>
struct Dropped {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t b) const {
        const bool there = draws.where != nullptr;
        const std::uint64_t seed = there ? static_cast<std::uint64_t>(draws.where[0]) : draws.seed;
        const std::uint64_t offset =
            there ? static_cast<std::uint64_t>(draws.where[1]) : draws.offset;
        const bool any = draws.any < 0 ? draws.where[2] != 0 : draws.any != 0;
        if (kept != nullptr && b == 0) {
            kept[0] = static_cast<std::int64_t>(seed);
            kept[1] = static_cast<std::int64_t>(offset);
            kept[2] = any ? 1 : 0;
        }
        Philox4 drawn = {};
        if (any) drawn = philox(seed, offset + static_cast<std::uint64_t>(b));
        const std::int64_t first = b / philox_lanes * dropout_group + b % philox_lanes;
        CATENA_UNROLL
        for (int k = 0; k < 4; ++k) {
            const std::int64_t e = first + k * philox_lanes;
            if (e >= n) continue;
            const auto v = cuda::load_as<C>(x[e]);
            const C survivor = any ? v * scale : v;
            cuda::store(y[e], add != 0, any && drawn.v[k] < limit ? C(0) : survivor);
        }
    }
    const T* x;
    T* y;
    std::int64_t* kept;
    std::int64_t n;
    cuda::DrawsOnDevice draws;
    C scale;
    std::uint32_t limit, add;
};

template <class T>
void drop_on_device(const auto& call, Tensor<const T> x, const cuda::DrawsOnDevice& draws, Tensor<T> y,
                    std::int64_t* kept, bool add) {
    using C = cuda::Compute<T>;
    const double ratio = call.template attr<"ratio">();
    const Dropped<T> rule = {.x = x.data,
                             .y = y.data,
                             .kept = kept,
                             .n = y.size(),
                             .draws = draws,
                             .scale = C(1) / (C(1) - static_cast<C>(ratio)),
                             .limit = dropout_limit(ratio),
                             .add = add};
    // At least one thread must run: it stores the draws in `kept`.
    cuda::each(call.queue(),
               std::max<std::int64_t>(static_cast<std::int64_t>(dropout_blocks(y.size())), 1),
               rule);
}
template <class F, class T>
void drop(const cuda::Call<F>& call, Tensor<const T> x, const std::int64_t* kept, Tensor<T> y,
          bool add) {
    drop_on_device(call, x, {0, 0, kept, -1}, y, nullptr, add);
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Dropout> : catena::plugins::Dropout {
    template <class T, class>
    static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const bool any = call.train() && call.template attr<"ratio">() != 0;
        DrawsOnDevice draws = {0, 0, nullptr, 0};
        if (any)
            draws = reserve_draws(call.context(), catena::plugins::dropout_blocks(x.size()));
        drop_on_device(call, x, draws, call.template y<T>(0), call.template y<std::int64_t>(1).data,
                       call.adds(0));
    }
};
