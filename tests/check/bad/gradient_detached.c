// The gradient has the right value, but only a part of its dependence on x is differentiable.
// expect: gradients/second-order
#include "composed.h"
static catena_function frozen;
static catena_kernel frozen32, frozen64;
static const char *no_examples[] = {"x=(2,3)", NULL};
static catena_status CATENA_CALL gradient(catena_ctx *ctx, const catena_gradient_call *call) {
    catena_var *x, *half;
    catena_status status = call_of(ctx, "org.example.frozen", NULL, call->x[0], NULL, &x);
    if (status != CATENA_OK) return status;
    /* frozen(x) = x^2 has no derivative, so that of frozen(x) / x = x is wrong. */
    status = call_of(ctx, "catena.div", NULL, x, call->x[0], &half);
    return status != CATENA_OK ? status : gradient_with(ctx, call, 2, half);
}
SPOIL {
    frozen = the_function;
    frozen.name = "org.example.frozen";
    frozen.flags = CATENA_FUNCTION_NOT_DIFFERENTIABLE;
    frozen.retain_x = 0;
    frozen.examples = no_examples;
    frozen32 = forward32, frozen64 = forward64;
    frozen32.function = frozen64.function = frozen.name;
    the_function.gradient = gradient;
    the_functions[1] = &frozen;
    the_plugin.n_functions = 2;
    the_kernels[4] = &frozen32, the_kernels[5] = &frozen64;
    the_plugin.n_kernels = 6;
}
