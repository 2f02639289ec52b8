// What this build has code for.
#include "device.hpp"

namespace catena_cuda {

int least_capability() {
#if defined(__CUDA_ARCH_LIST__)
    constexpr int built[] = {__CUDA_ARCH_LIST__};  // 800 ..., the lowest first
    return built[0] / 10;
#else  // an emulator's compiler
    return 80;
#endif
}

}  // namespace catena_cuda
