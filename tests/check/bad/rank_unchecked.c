// infer() accepts any rank; given four axes, the kernel reads a fifth extent.
// expect: fuzz/ranks
// options: --only fuzz/ranks --only inference --only values
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    volatile int64_t fifth = 0;
    if (call->x[0]->dl.ndim == 4) fifth = call->x[0]->dl.shape[4];
    (void)fifth;
    return forward_float(ctx, call);
}
SPOIL { forward32.run = spoilt; }
