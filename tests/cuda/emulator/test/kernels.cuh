// Kernels of the emulator's tests.
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

// Adds the sum of x to *sum.
__global__ void atomic_sum(const double* x, double* sum, int n) {
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) atomicAdd(sum, x[i]);
}

__global__ void half_a_barrier() {
    if (threadIdx.x < 8) __syncthreads();
}

__global__ void traps(int thread) {
    if (static_cast<int>(threadIdx.x) == thread) __trap();
}

__global__ void write_at(char* data, int at) { data[at] = 1; }
