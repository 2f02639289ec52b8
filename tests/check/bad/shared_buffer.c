// All calls share one static buffer.
// expect: determinism/concurrent
#include <time.h>
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    enum { most = 4 };
    static float first[most];
    const struct timespec moment = {0, 100000};
    const float *x = (const float *)data_of(call->x[0]);
    float *y = (float *)data_of(call->y[0]);
    const int64_t n = size_of(call->x[0]) < most ? size_of(call->x[0]) : most;
    const catena_status status = forward_float(ctx, call);
    for (int64_t i = 0; i < n; ++i) first[i] = (float)call->attrs[0].v.f * x[i] * x[i];
    nanosleep(&moment, NULL);
    for (int64_t i = 0; i < n; ++i) y[i] = first[i];
    return status;
}
SPOIL { forward32.run = spoilt; }
