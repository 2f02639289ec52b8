// cuda: whether calls use cuDNN.
#pragma once

#include <catena/core/config.hpp>

namespace catena::cuda {

// Whether this thread's calls may run on cuDNN, gradients included, until the end of the scope; else
// other kernels take them, the same functions. They may from the start, unless CATENA_CUDNN=0 is set.
//
//     const cuda::use_cudnn scope(false);
class [[nodiscard]] use_cudnn : using_named_config {
public:
    explicit use_cudnn(bool use) : using_named_config("use_cudnn", use ? 1 : 0) {}
};

}  // namespace catena::cuda
