// catena.blas for tests: for kernels that ask the host for products, and as a reference for others.
#pragma once

#include "catena/abi/ext/blas.h"

namespace catena::testing {

// Plain loops, summed in double in the order of k.
extern const catena_blas plain_blas;

}  // namespace catena::testing
