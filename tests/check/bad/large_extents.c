// expect: inference/overflow fuzz/shapes
// infer() uses extents as indices of an array; large ones are out of bounds.
#include "module.h"

static int counts[1 << 20];

static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    for (int32_t d = 0; d < x[0]->ndim; ++d) ++*(volatile int *)&counts[x[0]->shape[d]];
    return infer_square(ctx, attrs, x, n_x, y, n_y);
}
SPOIL { the_function.infer = infer; }
