// Writes one element past the end of the output.
// expect: values/guard fuzz/attributes fuzz/shapes fuzz/ranks
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    const int64_t n = size_of(call->x[0]);
    const catena_status status = forward_float(ctx, call);
    float *y = (float *)data_of(call->y[0]);
    y[n] = 0;
    return status;
}
SPOIL { forward32.run = spoilt; }
