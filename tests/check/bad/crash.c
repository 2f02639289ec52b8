// Crashes in calls with many elements.
// expect: values/survives determinism/concurrent faults/pieces fuzz/shapes
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    const int64_t n = size_of(call->x[0]);
    const catena_status status = forward_float(ctx, call);
    float *y = (float *)data_of(call->y[0]);
    if (n > 1000) *(volatile int *)0 = 1;
    (void)y;
    return status;
}
SPOIL { forward32.run = spoilt; }
