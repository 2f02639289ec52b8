// Calls that take a while for each element, and are wrong from 20 elements on: long calls are shorter
// than those of other functions, and a repetition has the same.
// expect: values/dtypes
// again: --reproduce 1:
// notes: no calls longer than
#include <time.h>

#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    const int64_t n = size_of(call->y[0]);
    const clock_t start = clock();
    while (clock() - start < n * (CLOCKS_PER_SEC / 5000)) {
    }
    const catena_status status = forward_float(ctx, call);
    if (n >= 20) ((float *)data_of(call->y[0]))[19] += 1;
    return status;
}
SPOIL { forward32.run = spoilt; }
