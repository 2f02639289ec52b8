// The kernels of the emulator's tests are CUDA: nvcc takes them, for every architecture.
#include "kernels.cuh"

template __global__ void scale(const float*, float*, float, std::int64_t);
template __global__ void scale(const double*, double*, double, std::int64_t);
