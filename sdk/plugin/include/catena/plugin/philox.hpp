// Philox random numbers for kernels: one block, or many blocks at once.
#pragma once

#include <cstdint>

#include "catena/abi/philox.h"
#include "catena/plugin/isa.hpp"

namespace catena::plugin {

struct Philox4 {
    std::uint32_t v[4];
};

// Returns block `counter` of the stream `key`; the counter's upper 64 bits are 0 unless given.
CATENA_FN Philox4 philox(std::uint64_t key, std::uint64_t counter, std::uint64_t upper = 0) {
    Philox4 block{};
    catena_philox(key, counter, upper, block.v);
    return block;
}

// Computes blocks counter .. counter + 63, for vector units: out[k][j] is word k of block j.
inline constexpr std::int64_t philox_lanes = 64;
CATENA_KERNEL void philox(std::uint64_t key, std::uint64_t counter,
                          std::uint32_t (&out)[4][philox_lanes]) {
    auto k0 = static_cast<std::uint32_t>(key);
    auto k1 = static_cast<std::uint32_t>(key >> 32);
    for (std::int64_t j = 0; j < philox_lanes; ++j) {
        const std::uint64_t c = counter + static_cast<std::uint64_t>(j);
        out[0][j] = static_cast<std::uint32_t>(c);
        out[1][j] = static_cast<std::uint32_t>(c >> 32);
        out[2][j] = 0;
        out[3][j] = 0;
    }
    for (int round = 0; round < 10; ++round) {
        CATENA_LOOP
        for (std::int64_t j = 0; j < philox_lanes; ++j) {
            std::uint32_t c0 = out[0][j], c1 = out[1][j], c2 = out[2][j], c3 = out[3][j];
            catena_philox_round(&c0, &c1, &c2, &c3, k0, k1);
            out[0][j] = c0;
            out[1][j] = c1;
            out[2][j] = c2;
            out[3][j] = c3;
        }
        k0 += CATENA_PHILOX_STEP_0;
        k1 += CATENA_PHILOX_STEP_1;
    }
}

}  // namespace catena::plugin
