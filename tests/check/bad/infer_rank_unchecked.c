// infer() reads the second extent of inputs that have only one axis, past the end of the shape.
// expect: inference/ranks
// once: inference/ranks
#include "module.h"
static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    const int64_t columns = x[0]->shape[1];
    const catena_status status = infer_square(ctx, attrs, x, n_x, y, n_y);
    if (status == CATENA_OK && y[0]->ndim == 1 && columns == 5) y[0]->shape[0] += 1;
    return status;
}
SPOIL { the_function.infer = infer; }
