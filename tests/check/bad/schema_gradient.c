// expect: schema/gradient
#include "module.h"
static catena_status CATENA_CALL gradient(catena_ctx *ctx, const catena_gradient_call *call) {
    (void)call;
    return host->fail(ctx, CATENA_E_INTERNAL, "[" NAME "] gradient: expected no call, got one");
}
SPOIL {
    the_function.flags = CATENA_FUNCTION_NOT_DIFFERENTIABLE;
    the_function.gradient = gradient;
    the_plugin.n_kernels = 2;
}
