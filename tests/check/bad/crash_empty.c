// The float32 kernel crashes on empty arrays; the float64 gradient is twice the correct one.
// expect: values/survives values/size-one values/zero-d gradients/kernel
// skips: values/empty values/reached
// passes: values/dtypes values/layout gradients/targets determinism/threads
// options: --only values --only gradients --only determinism/threads
#include "module.h"
static catena_status CATENA_CALL crashes(catena_ctx *ctx, const catena_call *call) {
    if (size_of(call->x[0]) == 0) *(volatile int *)0 = 1;
    return forward_float(ctx, call);
}
static catena_status CATENA_CALL twice(catena_ctx *ctx, const catena_call *call) {
    const catena_status status = backward_double(ctx, call);
    double *gx = call->gx[0] == NULL ? NULL : (double *)data_of(call->gx[0]);
    for (int64_t i = 0; gx != NULL && i < size_of(call->gx[0]); ++i) gx[i] *= 2;
    return status;
}
SPOIL {
    forward32.run = crashes;
    backward64.run = twice;
    backward64.flags = CATENA_KERNEL_DETERMINISTIC;
}
