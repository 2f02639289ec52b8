// The result is wrong if there is a single element and at least one axis.
// expect: values/size-one
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    const int64_t n = size_of(call->x[0]);
    const catena_status status = forward_float(ctx, call);
    float *y = (float *)data_of(call->y[0]);
    if (n == 1 && call->x[0]->dl.ndim > 0) y[0] += 1;
    return status;
}
SPOIL { forward32.run = spoilt; }
