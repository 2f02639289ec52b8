// Kernels that were compiled at run time.
#pragma once

#include "emulator/launch.hpp"

namespace catena_emulator {

// Returns the kernel of a cudaKernel_t; nullptr if it is not one. Locks api().
const KernelEntry* find_kernel(const void* kernel);

}  // namespace catena_emulator
