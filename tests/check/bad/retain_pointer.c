// Backward reads a field of y, which is NULL because it is not retained, and ignores the value.
// expect: values/survives
// options: --only values --only gradients
// says: it follows a NULL pointer, and a host gives backward NULL for y y (not in retain_y)
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    volatile uint32_t flags = call->y[0]->flags;
    (void)flags;
    return backward_float(ctx, call);
}
SPOIL { backward32.run = spoilt; }
