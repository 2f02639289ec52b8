// catena.blas/1 of CUDA: products by cuBLAS.
#pragma once

#include "catena/abi/ext/blas.h"

namespace catena_cuda {

extern const catena_blas blas_table;

}  // namespace catena_cuda
