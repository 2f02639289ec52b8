// Compiles the kernels of the emulator's tests with nvcc, which shows that they are valid CUDA.
#include "kernels.cuh"

template __global__ void scale(const float*, float*, float, std::int64_t);
template __global__ void scale(const double*, double*, double, std::int64_t);
