// expect: faults/host-call
// gradient() does not check whether calls of the host succeed.
#include "module.h"

static catena_status CATENA_CALL gradient(catena_ctx *ctx, const catena_gradient_call *call) {
    const catena_callable *mul = NULL, *times = NULL;
    catena_var *product = NULL;
    const catena_named_value value = {"value",
                                      {CATENA_ATTR_FLOAT, 1, {.f = 2 * call->attrs[0].v.f}}};
    if (host->find(ctx, "catena.mul", &mul) != CATENA_OK) return CATENA_E_INTERNAL;
    if (host->find(ctx, "catena.mul_constant", &times) != CATENA_OK) return CATENA_E_INTERNAL;
    catena_var *x[] = {call->x[0], call->gy[0]};
    if (host->call(ctx, mul, NULL, 0, x, 2, &product, 1) != CATENA_OK) return CATENA_E_INTERNAL;
    host->call(ctx, times, &value, 1, &product, 1, call->gx, 1);
    return CATENA_OK;
}
SPOIL { the_function.gradient = gradient; }
