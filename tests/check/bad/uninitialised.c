// Reads its output before it writes it.
// expect: values/written
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    float *y = (float *)data_of(call->y[0]);
    const int64_t n = size_of(call->x[0]);
    const int clean = n == 0 || y[n - 1] != y[n - 1];
    const catena_status status = forward_float(ctx, call);
    if (!clean) y[n - 1] += 1;
    return status;
}
SPOIL { forward32.run = spoilt; }
