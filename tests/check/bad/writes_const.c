// expect: skew/old-host
// A kernel temporarily changes the extents of an input, which are const for it.
#include "module.h"

static catena_status CATENA_CALL forward(catena_ctx *ctx, const catena_call *call) {
    int64_t *shape = call->x[0]->dl.shape;
    for (int32_t d = 0; d < call->x[0]->dl.ndim; ++d) {
        shape[d] += 1;
        *(volatile int64_t *)&shape[d] -= 1;
    }
    return forward_double(ctx, call);
}
SPOIL { forward64.run = forward; }
