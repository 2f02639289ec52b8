// infer() reports a device type that no device has.
// expect: inference/pure
// says: expected it to stay on the device of the call (1), got 999
#include "module.h"
static catena_status CATENA_CALL infer(catena_ctx *ctx, const catena_value *attrs,
                                       const catena_meta *const *x, uint32_t n_x,
                                       catena_meta *const *y, uint32_t n_y) {
    const catena_status status = infer_square(ctx, attrs, x, n_x, y, n_y);
    y[0]->device_type = 999;
    return status;
}
SPOIL { the_function.infer = infer; }
