// Kernels, each with a fault that is common in CUDA code. A comment `// fault NAME` marks the line that
// the report has to name.
#include "planted.hpp"

namespace planted {
namespace {

__device__ unsigned thread() { return blockIdx.x * blockDim.x + threadIdx.x; }

__global__ void missing_barrier(const float* x, float* y) {
    __shared__ float part[256];
    part[threadIdx.x] = 0;
    __syncthreads();
    y[threadIdx.x] = part[255 - threadIdx.x];  // fault missing_barrier
    part[threadIdx.x] = x[threadIdx.x];
}

__global__ void missing_warp_barrier(const float* x, float* y) {
    __shared__ float part[32];
    part[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = part[31 - threadIdx.x];  // fault missing_warp_barrier
}

__global__ void missing_end(const float* x, float* y) {
    y[thread()] = x[thread()] + 1;  // fault missing_end
}

__global__ void wrong_stride(const float* x, float* y, int n) {
    for (unsigned i = thread(); i < n; i += blockDim.x)  // not blockDim.x * gridDim.x
        y[i] = x[i] + y[i];                              // fault wrong_stride
}

__global__ void every_other(const float* x, float* y) {
    y[2 * (thread() / 2)] = x[thread()];  // fault same_element
}

__global__ void read_all(const float* x, float* y) {
    y[thread()] = x[thread()];  // fault gap
}
__global__ void write_even(float* y) { y[2 * thread()] = 1; }

__global__ void padded(Padded p) {
    p.out[threadIdx.x] = static_cast<float>(p.factor);  // fault padding
}

__global__ void accumulator(const float* x, float* sums) {
    __shared__ float sum[32];
    for (int i = 0; i < 4; ++i) sum[threadIdx.x] += x[threadIdx.x];  // fault accumulator
    sums[threadIdx.x] = sum[threadIdx.x];
}

__global__ void float_for_double(const double* x, double* y) {
    const float third = static_cast<float>(x[threadIdx.x]) / 3;
    y[threadIdx.x] = third;  // fault float_for_double
}

__global__ void wrong_mask(float* x) {
    float sum = x[threadIdx.x];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffff, sum, d);  // fault wrong_mask
    x[threadIdx.x] = sum;
}

__global__ void lane_gone(float* x) {
    if (threadIdx.x >= 20) return;
    x[threadIdx.x] = __shfl_xor_sync(0xffffffff, x[threadIdx.x], 1);  // fault lane_gone
}

__global__ void blocks_race(const float* x, float* sum) {
    if (threadIdx.x == 0) *sum += x[blockIdx.x];  // fault blocks_race
}

__global__ void divergent_barrier(float* x) {
    if (threadIdx.x < 8) __syncthreads();  // fault divergent_barrier
    x[threadIdx.x] = 1;
}

__global__ void misaligned(const float* x, float4* y) {
    y[threadIdx.x] = reinterpret_cast<const float4*>(x + 1)[threadIdx.x];  // fault misaligned
}

__global__ void add_one(float* x) {
    x[threadIdx.x] += 1;  // fault add_one
}

__global__ void dynamic_shared(float* x) {
    extern __shared__ float space[];
    space[threadIdx.x] = 1;  // fault dynamic_shared
    x[threadIdx.x] = space[threadIdx.x];
}

}  // namespace

const Kernels kernels = {missing_barrier, missing_warp_barrier,
                         missing_end,     wrong_stride,
                         every_other,     read_all,
                         write_even,      padded,
                         accumulator,     float_for_double,
                         wrong_mask,      lane_gone,
                         blocks_race,     divergent_barrier,
                         misaligned,      add_one,
                         dynamic_shared};

}  // namespace planted
