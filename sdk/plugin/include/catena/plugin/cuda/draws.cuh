// Random numbers for kernels whose launches may be recorded.
#pragma once

#include "catena/abi/ext/draws.h"
#include "catena/plugin/cuda/launch.cuh"

namespace catena::plugin::cuda {

// The random numbers of a call: in seed, offset and any, or in device memory.
struct DrawsOnDevice {
    std::uint64_t seed, offset;
    const std::int64_t* where;  // seed and offset in device memory; null: use those above
    std::int64_t any;           // whether to use them; below 0: see where[2]
};
// Reserves n blocks of random numbers. For a recorded call, the draws are in device memory.
inline DrawsOnDevice reserve_draws(catena_ctx* ctx, std::uint64_t n) {
    DrawsOnDevice r = {0, 0, nullptr, 1};
    const auto* const draws =
        static_cast<const catena_draws*>(host().get_extension(&host(), CATENA_DRAWS_1));
    check_status(draws != nullptr ? draws->reserve(ctx, n, &r.seed, &r.offset, &r.where)
                                  : host().philox(ctx, n, &r.seed, &r.offset));
    return r;
}

}  // namespace catena::plugin::cuda
