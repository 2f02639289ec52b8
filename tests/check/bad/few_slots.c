// expect: faults/pieces
// A kernel supports only four slots of parallel_for().
#include "module.h"

struct work {
    const double *x;
    double *y;
    double scale[4];
};
static void CATENA_CALL piece(void *user, int64_t begin, int64_t end, int32_t slot) {
    const struct work *w = user;
    for (int64_t i = begin; i < end && slot < 4; ++i) w->y[i] = w->scale[slot] * w->x[i] * w->x[i];
}
static catena_status CATENA_CALL forward(catena_ctx *ctx, const catena_call *call) {
    const double scale = call->attrs[0].v.f;
    struct work w = {data_of(call->x[0]), data_of(call->y[0]), {scale, scale, scale, scale}};
    host->parallel_for(ctx, size_of(call->y[0]), 64, piece, &w);
    return CATENA_OK;
}
SPOIL { forward64.run = forward; }
