// The result is wrong for arrays without axes.
// expect: values/zero-d
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    const int64_t n = size_of(call->x[0]);
    const catena_status status = forward_float(ctx, call);
    float *y = (float *)data_of(call->y[0]);
    if (call->x[0]->dl.ndim == 0) y[0] += n > 0;
    return status;
}
SPOIL { forward32.run = spoilt; }
