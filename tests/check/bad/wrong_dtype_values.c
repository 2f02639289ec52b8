// The float32 results differ from the float64 results.
// expect: values/dtypes
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    const int64_t n = size_of(call->x[0]);
    const catena_status status = forward_float(ctx, call);
    float *y = (float *)data_of(call->y[0]);
    for (int64_t i = 0; i < n; ++i) y[i] *= 1.25f;
    return status;
}
SPOIL { forward32.run = spoilt; }
