// expect: inference/wrong-dtype fuzz/attributes fuzz/shapes
#include "module.h"
static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    if (x[0]->dtype.code != CATENA_CODE_FLOAT) return host->fail(ctx, CATENA_E_DTYPE, "bad dtype");
    return infer_square(ctx, attrs, x, n_x, y, n_y);
}
SPOIL { the_function.infer = infer; }
