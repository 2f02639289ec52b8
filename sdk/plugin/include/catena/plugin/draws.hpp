// Random numbers for kernels on devices that record their work.
#pragma once

#include "catena/abi/ext/draws.h"
#include "catena/plugin/error.hpp"
#include "catena/plugin/kernel.hpp"

namespace catena::plugin {

// The start of n blocks of random numbers (see philox.hpp): in `where`, device memory with seed and
// offset, if the call is recorded; otherwise here.
struct Reserved {
    std::uint64_t seed = 0;
    std::uint64_t offset = 0;
    const std::int64_t* where = nullptr;
};
inline Reserved reserve_draws(catena_ctx* ctx, std::uint64_t n) {
    Reserved r;
    const auto* const draws =
        static_cast<const catena_draws*>(host().get_extension(&host(), CATENA_DRAWS_1));
    const catena_status status = draws != nullptr
                                     ? draws->reserve(ctx, n, &r.seed, &r.offset, &r.where)
                                     : host().philox(ctx, n, &r.seed, &r.offset);
    if (status != CATENA_OK) throw Error(status);
    return r;
}

}  // namespace catena::plugin
