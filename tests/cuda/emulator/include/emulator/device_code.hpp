// The language of kernels: keywords, indices, barriers, atomics.
#pragma once

#include <cmath>
#include <cstdint>

#include "emulator/types.hpp"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __restrict__ __restrict
#define __grid_constant__
// Blocks that share an OS thread run in sequence. `extern __shared__ T name[]` is not supported.
#define __shared__ thread_local

#pragma GCC visibility push(default)

[[gnu::tls_model("initial-exec")]] extern __thread uint3 threadIdx, blockIdx;
[[gnu::tls_model("initial-exec")]] extern __thread dim3 blockDim, gridDim;

namespace catena_emulator {

void sync_block();
unsigned dynamic_shared_bytes();
[[noreturn]] void trap(const char* why);

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
// PTX's special register of this name.
inline unsigned __dynamic_smem_size() { return catena_emulator::dynamic_shared_bytes(); }

#define CATENA_EMULATOR_ATOMIC(T)                                       \
    inline T atomicAdd(T* place, T value) {                             \
        return catena_emulator::change_atomically(                      \
            place, [=](T old) { return static_cast<T>(old + value); }); \
    }                                                                   \
    inline T atomicMax(T* place, T value) {                             \
        return catena_emulator::change_atomically(                      \
            place, [=](T old) { return old < value ? value : old; });   \
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

[[noreturn]] inline void __trap() { catena_emulator::trap("__trap()"); }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float rsqrt(float x) { return rsqrtf(x); }
