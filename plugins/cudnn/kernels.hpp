// The kernels that plugin.cpp lists; and those of this plugin's own: a convolution's bias added, and the
// gradient of that.
#pragma once

#include <vector>

#include "library.hpp"

namespace catena_cudnn {

std::vector<catena_kernel> convolution_kernels();

// y (n, c, ...) += b (c), on the call's stream.
void add_bias(const catena_call& call, const catena_tensor& b, catena_tensor& y);

// sums (c) = images (n, c, ...) summed over all but c, or added to sums.
void sum_channels(const catena_call& call, const catena_tensor& images, catena_tensor& sums,
                  bool add, void* scratch);
std::uint64_t sum_channels_scratch(const catena_tensor& images);

}  // namespace catena_cudnn
