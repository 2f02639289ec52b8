// Kernels that were made at run time.
#pragma once

#include "emulator/launch.hpp"

namespace catena_emulator {

// What a cudaKernel_t stands for; nullptr if it is none. Takes api().
const KernelEntry* find_kernel(const void* kernel);

}  // namespace catena_emulator
