// expect: gradients/kernel
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    const catena_status status = backward_float(ctx, call);
    if (call->gx[0] == NULL || call->req[0] != CATENA_REQ_WRITE) return status;
    float *gx = (float *)data_of(call->gx[0]);
    for (int64_t i = 0, n = size_of(call->gx[0]); i < n; ++i) gx[i] *= 1.25f;
    return status;
}
SPOIL {
    backward32.run = spoilt;
    backward32.flags = CATENA_KERNEL_DETERMINISTIC;
}
