// A warp while it runs, and the memory that its lanes access.
#pragma once

#include <emmintrin.h>

#include <cstring>

#include "code.hpp"

namespace catena_machine {

constexpr std::uint32_t all_lanes = 0xffffffff;
// Addresses of shared memory, local memory and arguments among generic addresses.
constexpr std::uint64_t window_mask = std::uint64_t{0xff} << 56;
constexpr std::uint64_t shared_window = std::uint64_t{1} << 56;
constexpr std::uint64_t local_window = std::uint64_t{2} << 56;
constexpr std::uint64_t param_window = std::uint64_t{3} << 56;
constexpr std::uint64_t dynamic_shared = std::uint64_t{1} << 30;  // offset of dynamic shared memory

// The last write and the last read of a word of 4 bytes.
struct alignas(16) Touch {
    std::uint32_t launch = 0;                       // 0: none
    std::uint32_t thread = 0;                       // its number in the grid
    std::uint16_t barriers = 0, warp_barriers = 0;  // that the thread has passed
    std::uint32_t pc : 24 = 0;                      // the instruction
    std::uint32_t bytes : 4 = 0;                    // a bit for each byte of the word
    std::uint32_t atomic : 1 = 0;
    std::uint32_t spread : 2 = 0;  // how far apart the threads are, if several have read it
};
struct Touched {
    Touch write, read;
};

// The bytes of a Touch. Blocks on two OS threads may note accesses of one word at the same time; a Touch
// is written at once, so that it never has parts of two accesses.
struct TouchBits {
    std::uint64_t low, high;
    static constexpr int bytes_at = 56, spread_at = 61;  // in high
};
inline __attribute__((always_inline)) TouchBits at_once(const Touch& from) {
    const __m128i v = *reinterpret_cast<const volatile __m128i*>(&from);
    return {static_cast<std::uint64_t>(_mm_cvtsi128_si64(v)),
            static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(v, v)))};
}
inline __attribute__((always_inline)) void set_at_once(Touch& to, TouchBits bits) {
    *reinterpret_cast<volatile __m128i*>(&to) =
        _mm_set_epi64x(static_cast<long long>(bits.high), static_cast<long long>(bits.low));
}

struct Block;

// An instruction that cannot be executed, by one lane.
struct Stopped {
    int error;
    int lane;
    std::string why;
};

// Stops a kernel with cudaErrorLaunchFailure.
[[noreturn]] void throw_stopped(int lane, const char* why);

struct Warp {
    unsigned char* bases[2];     // registers, constants
    std::uint32_t active = 0;    // lanes that execute the instruction
    std::uint32_t live = 0;      // lanes that have not ended
    std::uint32_t first_thread;  // number of lane 0 in the block
    std::uint16_t barriers = 0;  // that were passed by the warp alone
    Block* block = nullptr;
    std::int32_t pc = 0;  // the instruction that is executed

    template <class T>
    T* at(Slot slot) const {
        return reinterpret_cast<T*>(bases[slot & 1] + (slot >> 1));
    }

    // Returns where the lane's value is. Throws Stopped if the lane must not access it.
    void* access(const Instruction& in, int lane, std::uint64_t address, bool write,
                 bool atomic = false);
    void store(const Instruction& in, int lane, std::uint64_t address, const void* value);
    std::uint64_t address(const Instruction& in, int lane) const {
        if (in.wide[1] == 4)
            return at<std::uint32_t>(in.at[4])[lane] + static_cast<std::uint32_t>(in.offset);
        return at<std::uint64_t>(in.at[4])[lane] + static_cast<std::uint64_t>(in.offset);
    }
};

}  // namespace catena_machine
