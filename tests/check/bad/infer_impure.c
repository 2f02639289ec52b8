// infer() assumes that the outputs are zeroed.
// expect: inference/pure
#include "module.h"
static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    if ((y[0]->ndim & 0xff) == 0xa5)
        return host->fail(ctx, CATENA_E_SHAPE, "[" NAME "] y: expected zeros, got a shape");
    return infer_square(ctx, attrs, x, n_x, y, n_y);
}
SPOIL { the_function.infer = infer; }
