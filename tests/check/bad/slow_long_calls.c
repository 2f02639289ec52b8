// float64 calls take long for each element, and float32 results are wrong from 100 elements on. The
// check makes shorter long calls than for other functions, and --reproduce makes the same ones.
// expect: values/dtypes
// again: --reproduce 1:
// notes: no calls longer than
#include <time.h>

#include "module.h"
static catena_status CATENA_CALL slow(catena_ctx *ctx, const catena_call *call) {
    const clock_t start = clock();
    while (clock() - start < size_of(call->y[0]) * (CLOCKS_PER_SEC / 50000)) {
    }
    return forward_double(ctx, call);
}
static catena_status CATENA_CALL wrong(catena_ctx *ctx, const catena_call *call) {
    const catena_status status = forward_float(ctx, call);
    if (size_of(call->y[0]) >= 100) ((float *)data_of(call->y[0]))[99] += 1;
    return status;
}
SPOIL {
    forward64.run = slow;
    forward32.run = wrong;
}
