// Philox4x32-10 (Salmon et al., 2011): random numbers from a counter, the same on every device.
#pragma once

#include <cstdint>

#include "catena/plugin/isa.hpp"

namespace catena::plugin {

struct Philox4 {
    std::uint32_t v[4];
};

// Block `counter` of the stream `key`; the upper 64 bits of the counter are 0 unless given.
CATENA_FN Philox4 philox(std::uint64_t key, std::uint64_t counter, std::uint64_t upper = 0) {
    auto k0 = static_cast<std::uint32_t>(key);
    auto k1 = static_cast<std::uint32_t>(key >> 32);
    auto c0 = static_cast<std::uint32_t>(counter);
    auto c1 = static_cast<std::uint32_t>(counter >> 32);
    auto c2 = static_cast<std::uint32_t>(upper);
    auto c3 = static_cast<std::uint32_t>(upper >> 32);
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0;
        const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2;
        c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
        c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
        c1 = static_cast<std::uint32_t>(p1);
        c3 = static_cast<std::uint32_t>(p0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
}

// Blocks counter .. counter + 63 side by side, for vector units: out[k][j] is word k of block j.
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
            const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * out[0][j];
            const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * out[2][j];
            const std::uint32_t c0 = static_cast<std::uint32_t>(p1 >> 32) ^ out[1][j] ^ k0;
            const std::uint32_t c2 = static_cast<std::uint32_t>(p0 >> 32) ^ out[3][j] ^ k1;
            out[1][j] = static_cast<std::uint32_t>(p1);
            out[3][j] = static_cast<std::uint32_t>(p0);
            out[0][j] = c0;
            out[2][j] = c2;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

}  // namespace catena::plugin
