// Backward reads y if it is given, but the function retains only x.
// expect: gradients/retained
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    const catena_status status = backward_float(ctx, call);
    if (call->y[0] == NULL || call->gx[0] == NULL) return status;
    const float *y = (const float *)data_of(call->y[0]);
    float *gx = (float *)data_of(call->gx[0]);
    for (int64_t i = 0, n = size_of(call->gx[0]); i < n; ++i) gx[i] += 0 * y[i];
    return status;
}
SPOIL { backward32.run = spoilt; }
