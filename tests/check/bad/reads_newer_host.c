// expect: skew/old-host
// infer() reads a service behind the end of the host's table.
#include "module.h"

static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    void *const *newer = (void *const *)(host + 1);
    void *const volatile service = *(void *const volatile *)newer;
    (void)service;
    return infer_square(ctx, attrs, x, n_x, y, n_y);
}
SPOIL { the_function.infer = infer; }
