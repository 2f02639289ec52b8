// infer() assumes that w has the shape of x.
// expect: inference/wrong-shape inference/wrong-rank fuzz/shapes fuzz/ranks
#include "product.h"
static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    (void)n_x, (void)n_y;
    infer_square(ctx, attrs, x, 1, y, 1);
    return infer_square(ctx, attrs, x, 1, y + 1, 1);
}
SPOIL {
    make_product();
    the_function.infer = infer;
}
