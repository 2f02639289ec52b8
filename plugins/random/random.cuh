// Arrays of random numbers, on CUDA: the numbers of the CPU for the same seed and offset.
#pragma once

#include <catena/plugin/cuda/draws.cuh>
#include <catena/plugin/cuda/elementwise.cuh>

#include "random.hpp"

namespace catena::plugins {

// Computes the numbers of a block of Philox.
template <class Numbers, class T>
struct RandomBlock {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t b) const {
        const Philox4 drawn = draws[b];
        C out[per_block<C>];
        Numbers::from(drawn.v, out);
        const std::int64_t first = b / philox_lanes * random_group<C> + b % philox_lanes;
        CATENA_UNROLL
        for (int k = 0; k < per_block<C>; ++k) {
            const std::int64_t e = first + k * philox_lanes;
            if (e < n) cuda::store(y[e], add != 0, shift + scale * out[k]);
        }
    }
    T* y;
    std::int64_t n, add;
    cuda::Draws draws;
    C shift, scale;
};
template <class Numbers, class T, class F>
void fill_random(const cuda::Call<F>& call, double shift, double scale) {
    using C = cuda::Compute<T>;
    const auto y = call.template y<T>(0);
    const std::uint64_t blocks = random_blocks<C>(y.size());
    const RandomBlock<Numbers, T> rule = {.y = y.data,
                                          .n = y.size(),
                                          .add = call.adds(0),
                                          .draws = cuda::reserve_draws(call.context(), blocks),
                                          .shift = static_cast<C>(shift),
                                          .scale = static_cast<C>(scale)};
    cuda::each(call.queue(), static_cast<std::int64_t>(blocks), rule);
}

}  // namespace catena::plugins
