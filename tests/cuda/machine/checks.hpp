// The memory of a block, and the checks of each access.
#pragma once

#include <unordered_set>

#include "warp.hpp"

namespace catena_machine {

// Errors, with the values of cudaError_t.
constexpr int illegal_address = 700, misaligned_address = 716, launch_failure = 719;

// Names a kernel, one of its instructions, and where that comes from.
std::string describe(const Code& code, std::uint32_t pc);

// Adds an instruction that the active lanes of a warp are about to execute.
void count(const Warp& warp, const Instruction& in, Profile& profile);

// Whether all n states, 1, 2, 4, 8 or 16, are this one. Always inlined, as instructions/ needs.
inline __attribute__((always_inline)) bool all_are(const Byte* states, std::size_t n, Byte state) {
    const std::uint64_t wanted = 0x0101010101010101 * static_cast<std::uint64_t>(state);
    std::uint64_t a = wanted, b = wanted;
    std::memcpy(&a, states, n < 8 ? n : 8);
    if (n == 16) std::memcpy(&b, states + 8, 8);
    return a == wanted && b == wanted;
}

struct Block {
    const Launch* launch = nullptr;
    const Code* code = nullptr;
    Extent index;
    std::uint32_t threads = 0;
    std::uint32_t number = 0;    // of the block in the grid
    std::uint32_t serial = 0;    // of the block among all that this OS thread runs
    std::uint16_t barriers = 0;  // passed

    // Shared memory, and local memory of one thread after the other, with the states of their bytes.
    std::vector<unsigned char> shared, local;
    std::vector<Byte> shared_states, local_states;
    std::vector<Touched> shared_touched;
    std::unordered_set<std::uint64_t> sectors;  // of global memory, for a profile

    void begin(const Launch& launch, std::uint64_t number, std::uint32_t threads);
    std::string describe(const Warp& warp, std::int32_t pc, int lane) const;
};

}  // namespace catena_machine
