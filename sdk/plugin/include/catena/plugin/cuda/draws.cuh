// Random numbers of a call on CUDA, which may be recorded.
#pragma once

#include "catena/abi/ext/draws.h"
#include "catena/plugin/cuda/launch.cuh"
#include "catena/plugin/philox.hpp"

namespace catena::plugin::cuda {

// Blocks of random numbers that a call has reserved. Pass it to kernels.
struct Draws {
    // The seed and the first block.
    __device__ __forceinline__ std::uint64_t seed() const {
        return where != nullptr ? static_cast<std::uint64_t>(where[0]) : own_seed;
    }
    __device__ __forceinline__ std::uint64_t offset() const {
        return where != nullptr ? static_cast<std::uint64_t>(where[1]) : own_offset;
    }
    __device__ __forceinline__ Philox4 operator[](std::int64_t i) const {
        return philox(seed(), offset() + static_cast<std::uint64_t>(i));
    }

    std::uint64_t own_seed = 0, own_offset = 0;
    const std::int64_t* where = nullptr;  // seed and offset in device memory; null: the own ones
};

// Reserves n blocks of random numbers. If the call is recorded, each launch draws its own.
inline Draws reserve_draws(catena_ctx* ctx, std::uint64_t n) {
    Draws r;
    const auto* const draws =
        static_cast<const catena_draws*>(host().get_extension(&host(), CATENA_DRAWS_1));
    check_status(draws != nullptr ? draws->reserve(ctx, n, &r.own_seed, &r.own_offset, &r.where)
                                  : host().philox(ctx, n, &r.own_seed, &r.own_offset));
    return r;
}

}  // namespace catena::plugin::cuda
