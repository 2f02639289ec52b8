// infer() returns one axis more than the maximum.
// expect: inference/ranks fuzz/ranks
#include "module.h"
static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    const catena_status status = infer_square(ctx, attrs, x, n_x, y, n_y);
    if (x[0]->ndim == CATENA_MAX_NDIM) ++y[0]->ndim;
    return status;
}
SPOIL { the_function.infer = infer; }
