// infer() doubles the extents in 64-bit arithmetic and halves them again: large ones overflow.
// expect: inference/overflow
#include "module.h"
static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    const catena_status status = infer_square(ctx, attrs, x, n_x, y, n_y);
    for (int32_t d = 0; status == CATENA_OK && d < y[0]->ndim; ++d)
        y[0]->shape[d] = (int64_t)((uint64_t)x[0]->shape[d] * 2) / 2;
    return status;
}
SPOIL { the_function.infer = infer; }
