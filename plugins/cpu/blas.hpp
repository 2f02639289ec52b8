// catena.blas/1 of the CPU: OpenBLAS' products, split over the pool.
#pragma once

#include "catena/abi/ext/blas.h"

namespace catena_cpu {

extern const catena_blas blas_table;

}  // namespace catena_cpu
