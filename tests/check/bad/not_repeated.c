// The result depends on the number of previous calls.
// expect: determinism/repeated
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    const int64_t n = size_of(call->x[0]);
    const catena_status status = forward_float(ctx, call);
    float *y = (float *)data_of(call->y[0]);
    static int calls;
    if (n > 0) y[0] += (float)++calls * 1e-7f;
    return status;
}
SPOIL { forward32.run = spoilt; }
