// Kernels that use the features of the emulator; plain CUDA.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

__global__ void number_threads(int* out) {
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const unsigned size = blockDim.x * blockDim.y * blockDim.z;
    out[block * size + thread] += static_cast<int>(block * 10000 + thread);
}

template <class T>
__global__ void __launch_bounds__(256)
    scale(const T* __restrict__ x, T* __restrict__ y, T a, std::int64_t n) {
    const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += stride)
        y[i] = a * x[i];
}

// Sums x in one block, with shared memory and a tree of barriers.
__global__ void block_sum(const float* x, float* sum, int n) {
    __shared__ float part[256];
    const int thread = static_cast<int>(threadIdx.x);
    float mine = 0;
    for (int i = thread; i < n; i += static_cast<int>(blockDim.x)) mine += x[i];
    part[thread] = mine;
    __syncthreads();
    for (int half = static_cast<int>(blockDim.x) / 2; half > 0; half /= 2) {
        if (thread < half) part[thread] += part[thread + half];
        __syncthreads();
    }
    if (thread == 0) *sum = part[0];
}

// Adds the sum of x to *sum. Threads past the end take part in the shuffles of their warps.
__global__ void warp_sum(const double* x, double* sum, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    double value = i < n ? x[i] : 0;
    for (unsigned delta = 16; delta > 0; delta /= 2)
        value += __shfl_down_sync(0xffffffffu, value, delta);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, value);
}

__global__ void shuffles(int* out) {
    const int lane = static_cast<int>(threadIdx.x);
    const int value = lane * 100;
    int* mine = out + lane * 8;
    mine[0] = __shfl_sync(0xffffffffu, value, 3);
    mine[1] = __shfl_up_sync(0xffffffffu, value, 1);
    mine[2] = __shfl_down_sync(0xffffffffu, value, 2);
    mine[3] = __shfl_xor_sync(0xffffffffu, value, 5);
    mine[4] = __shfl_sync(0xffffffffu, value, 1, 8);
    mine[5] = static_cast<int>(__ballot_sync(0xffffffffu, lane % 3 == 0));
    mine[6] = __any_sync(0xffffffffu, lane == 31) + 2 * __all_sync(0xffffffffu, lane < 31);
    // The halves of a warp diverge.
    const unsigned half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    for (int i = 0; i < (lane < 16 ? 1 : 3); ++i) mine[7] = __shfl_xor_sync(half, value + i, 1);
}

__global__ void counts(int* out) {
    const int n = __syncthreads_count(threadIdx.x % 2 == 0);
    const int any = __syncthreads_or(threadIdx.x == 5);
    const int all = __syncthreads_and(threadIdx.x < 1000);
    atomicAdd(out, n == static_cast<int>(blockDim.x + 1) / 2 && any != 0 && all != 0 ? 1 : 0);
}

__global__ void half_a_barrier() {
    if (threadIdx.x < 8) __syncthreads();
}

__global__ void traps(int thread) {
    if (static_cast<int>(threadIdx.x) == thread) __trap();
}

__global__ void write_behind(char* data, int at) { data[at] = 1; }
