// Transposed convolution, on CUDA.
#pragma once

#include "deconvolution_2d.hpp"
#include "filters.cuh"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Deconvolution2D>
    : catena::plugins::FilterKernels<catena::plugins::Deconvolution2D, true> {};
