// catena.compiler/1 of CUDA: NVRTC, opened when the first kernel is made.
#pragma once

#include "catena/abi/ext/compiler.h"

namespace catena_cuda {

extern const catena_compiler compiler_table;

// Source that comes before every kernel.

}  // namespace catena_cuda
