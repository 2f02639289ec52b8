// Writes 42 if the result overflows float32.
// expect: values/dtypes
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    const int64_t n = size_of(call->x[0]);
    const catena_status status = forward_float(ctx, call);
    float *y = (float *)data_of(call->y[0]);
    for (int64_t i = 0; i < n; ++i)
        if (y[i] > 1e38f) y[i] = 42;
    return status;
}
SPOIL {
    forward32.run = spoilt;
    the_examples[1] = "x=(4)[1e25,2e25] scale=0.5";
}
