// Results are wrong at unaligned addresses, as with vector code that requires alignment.
// expect: values/layout skew/old-host
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    const int64_t n = size_of(call->x[0]);
    const catena_status status = forward_float(ctx, call);
    float *y = (float *)data_of(call->y[0]);
    if ((uintptr_t)data_of(call->x[0]) % 64 != 0)
        for (int64_t i = 0; i < n; ++i) y[i] += 1;
    return status;
}
SPOIL { forward32.run = spoilt; }
