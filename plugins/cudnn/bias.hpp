// Kernels of this plugin's own: a convolution's bias added, and the gradient of that; and a scaling.
#pragma once

#include "library.hpp"

namespace catena_cudnn {

// y (n, c, ...) += b (c), on the call's stream.
void add_bias(const catena_call& call, const catena_tensor& b, catena_tensor& y);

// sums (c) = images (n, c, ...) summed over all but c, or added to sums.
void sum_channels(const catena_call& call, const catena_tensor& images, catena_tensor& sums,
                  bool add, void* scratch);
std::uint64_t sum_channels_scratch(const catena_tensor& images);

// values *= factor, of floats or doubles.
void scale(const catena_call& call, catena_tensor& values, double factor);

}  // namespace catena_cudnn
