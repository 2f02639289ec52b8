// The language of kernels: keywords, indices, barriers, warp operations, atomics.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "emulator/types.hpp"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __constant__
#define __grid_constant__
// Blocks that share an OS thread run in sequence. `extern __shared__ T name[]` is not supported;
// use T* name = static_cast<T*>(catena_emulator::dynamic_shared_memory()).
#define __shared__ thread_local
#define __align__(n) alignas(n)

#pragma GCC visibility push(default)

[[gnu::tls_model("initial-exec")]] extern __thread uint3 threadIdx, blockIdx;
[[gnu::tls_model("initial-exec")]] extern __thread dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace catena_emulator {

void sync_block();
int sync_block_count(bool predicate);
unsigned dynamic_shared_bytes();
[[noreturn]] void trap(const char* why);

// Every lane of mask gives a value and gets pick()'s result. present: the lanes that gave one.
using Pick = std::uint64_t (*)(const std::uint64_t* values, std::uint32_t present, int lane,
                               int argument, int width);
std::uint64_t exchange(std::uint32_t mask, std::uint64_t value, Pick pick, int argument, int width);
std::uint64_t pick_lane(const std::uint64_t*, std::uint32_t, int, int, int);
std::uint64_t pick_up(const std::uint64_t*, std::uint32_t, int, int, int);
std::uint64_t pick_down(const std::uint64_t*, std::uint32_t, int, int, int);
std::uint64_t pick_xor(const std::uint64_t*, std::uint32_t, int, int, int);
std::uint64_t pick_ballot(const std::uint64_t*, std::uint32_t, int, int, int);

template <class T>
T shuffle(std::uint32_t mask, T value, Pick pick, int argument, int width) {
    static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                  "shuffles take numbers of 4 and 8 bytes");
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    bits = exchange(mask, bits, pick, argument, width);
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T, class Change>
T change_atomically(T* place, Change change) {
    T old, wanted;
    __atomic_load(place, &old, __ATOMIC_RELAXED);
    do wanted = change(old);
    while (
        !__atomic_compare_exchange(place, &old, &wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old;
}

}  // namespace catena_emulator

#pragma GCC visibility pop

inline void __syncthreads() { catena_emulator::sync_block(); }
inline int __syncthreads_count(int predicate) {
    return catena_emulator::sync_block_count(predicate != 0);
}
// PTX's special register of this name.
inline unsigned __dynamic_smem_size() { return catena_emulator::dynamic_shared_bytes(); }
inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }
inline int __syncthreads_and(int predicate) { return __syncthreads_count(!predicate) == 0; }
inline void __syncwarp(unsigned mask = 0xffffffffu) {
    catena_emulator::exchange(mask, 0, catena_emulator::pick_ballot, 0, warpSize);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
    return static_cast<unsigned>(
        catena_emulator::exchange(mask, predicate != 0, catena_emulator::pick_ballot, 0, warpSize));
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = warpSize) {
    return catena_emulator::shuffle(mask, value, catena_emulator::pick_lane, lane, width);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
    return catena_emulator::shuffle(mask, value, catena_emulator::pick_up, static_cast<int>(delta),
                                    width);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize) {
    return catena_emulator::shuffle(mask, value, catena_emulator::pick_down,
                                    static_cast<int>(delta), width);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = warpSize) {
    return catena_emulator::shuffle(mask, value, catena_emulator::pick_xor, lanes, width);
}

#define CATENA_EMULATOR_ATOMIC(T)                                                   \
    inline T atomicAdd(T* place, T value) {                                         \
        return catena_emulator::change_atomically(                                  \
            place, [=](T old) { return static_cast<T>(old + value); });             \
    }                                                                               \
    inline T atomicMax(T* place, T value) {                                         \
        return catena_emulator::change_atomically(                                  \
            place, [=](T old) { return old < value ? value : old; });               \
    }                                                                               \
    inline T atomicExch(T* place, T value) {                                        \
        return catena_emulator::change_atomically(place, [=](T) { return value; }); \
    }
CATENA_EMULATOR_ATOMIC(int)
CATENA_EMULATOR_ATOMIC(unsigned)
CATENA_EMULATOR_ATOMIC(unsigned long long)
#undef CATENA_EMULATOR_ATOMIC
inline float atomicAdd(float* place, float value) {
    return catena_emulator::change_atomically(place, [=](float old) { return old + value; });
}
inline double atomicAdd(double* place, double value) {
    return catena_emulator::change_atomically(place, [=](double old) { return old + value; });
}
template <class T>
T atomicCAS(T* place, T expected, T wanted) {
    static_assert(std::is_integral_v<T>, "whole numbers");
    __atomic_compare_exchange(place, &expected, &wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
[[noreturn]] inline void __trap() { catena_emulator::trap("__trap()"); }
template <class T>
T __ldg(const T* place) {
    return *place;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned x, unsigned y) {
    return static_cast<unsigned>((static_cast<std::uint64_t>(x) * y) >> 32);
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
