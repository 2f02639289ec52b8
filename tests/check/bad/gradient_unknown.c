// y = sin(10^7 x): finite differences cannot determine the gradient, so there is no verdict.
// expect: nothing
// skips: gradients/kernel
// libs: m
#include <math.h>
#include "module.h"
static catena_status CATENA_CALL sine(catena_ctx *ctx, const catena_call *call) {
    const double *x = (const double *)data_of(call->x[0]);
    double *y = (double *)data_of(call->y[0]);
    (void)ctx;
    for (int64_t i = 0, n = size_of(call->y[0]); i < n; ++i)
        y[i] = call->attrs[0].v.f * sin(1e7 * x[i]);
    return CATENA_OK;
}
SPOIL {
    forward64.run = sine;
    the_kernels[0] = &forward64, the_kernels[1] = &backward64;
    the_plugin.n_kernels = 2;
}
