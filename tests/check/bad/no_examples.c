// Refuses an extent of 255 and a scale of 100 without a message. The check must first find a valid call.
// expect: fuzz/attributes fuzz/shapes
#include "module.h"
static catena_status CATENA_CALL mute(catena_ctx *ctx, const catena_value *attrs,
                                      const catena_meta *const *x, uint32_t n_x,
                                      catena_meta *const *y, uint32_t n_y) {
    if (attrs[0].v.f == 100) return CATENA_E_INVALID;
    for (int32_t d = 0; d < x[0]->ndim; ++d)
        if (x[0]->shape[d] == 255) return CATENA_E_SHAPE;
    return infer_square(ctx, attrs, x, n_x, y, n_y);
}
SPOIL {
    the_function.infer = mute;
    the_function.examples = NULL;
}
