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

}  // namespace catena::plugin
