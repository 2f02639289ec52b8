// expect: faults/host-call skew/extensions
// A kernel assumes that an extension for matrix products is available.
#include <catena/abi/ext/blas.h>

#include "module.h"

static catena_status CATENA_CALL forward(catena_ctx *ctx, const catena_call *call) {
    const catena_blas *blas = host->extensions(ctx, CATENA_BLAS_1)[0];
    return blas->name == NULL ? CATENA_E_UNSUPPORTED : forward_double(ctx, call);
}
SPOIL { forward64.run = forward; }
