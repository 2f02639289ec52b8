/* The gradient of module.h's function, as a composition of catena's functions. */
#ifndef COMPOSED_H
#define COMPOSED_H

#include "module.h"

/* y = function(x0, x1), with the attribute "value" unless value is NULL; x1 NULL: one input. */
static inline catena_status call_of(catena_ctx *ctx, const char *function, const double *value,
                                    catena_var *x0, catena_var *x1, catena_var **y) {
    const catena_named_value attrs[] = {
        {"value", {CATENA_ATTR_FLOAT, 1, {.f = value == NULL ? 0 : *value}}}};
    catena_var *const x[] = {x0, x1};
    const catena_callable *callable;
    const catena_status status = host->find(ctx, function, &callable);
    if (status != CATENA_OK) return status;
    return host->call(ctx, callable, attrs, value != NULL, x, x1 == NULL ? 1 : 2, y, 1);
}
/* gx = factor * scale * x * gy */
static inline catena_status gradient_with(catena_ctx *ctx, const catena_gradient_call *call,
                                          double factor, catena_var *x) {
    const double value = factor * call->attrs[0].v.f;
    catena_var *scaled;
    if (call->gy[0] == NULL) return CATENA_OK;
    const catena_status status = call_of(ctx, "catena.mul_constant", &value, x, NULL, &scaled);
    if (status != CATENA_OK) return status;
    return call_of(ctx, "catena.mul", NULL, scaled, call->gy[0], &call->gx[0]);
}

#endif
