// Convolution of images with filters, on CUDA.
#pragma once

#include "convolution_2d.hpp"
#include "filters.cuh"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Convolution2D>
    : catena::plugins::FilterKernels<catena::plugins::Convolution2D, false> {};
