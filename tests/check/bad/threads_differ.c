// The result depends on the number of threads.
// expect: determinism/threads faults/pieces
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    const int64_t n = size_of(call->x[0]);
    const catena_status status = forward_float(ctx, call);
    float *y = (float *)data_of(call->y[0]);
    if (host->slots(ctx) > 1 && n > 0) y[n - 1] *= 1.25f;
    return status;
}
SPOIL { forward32.run = spoilt; }
