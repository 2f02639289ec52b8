// Draws random numbers in a call without elements.
// expect: values/empty
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    const int64_t n = size_of(call->x[0]);
    const catena_status status = forward_float(ctx, call);
    float *y = (float *)data_of(call->y[0]);
    uint64_t seed, offset;
    if (n == 0) return host->philox(ctx, 1, &seed, &offset);
    (void)y;
    return status;
}
SPOIL { forward32.run = spoilt; }
