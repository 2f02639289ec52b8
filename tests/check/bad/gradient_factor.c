// y = scale x^2, but the gradient is computed as scale x.
// expect: gradients/composed
#include "composed.h"
static catena_status CATENA_CALL gradient(catena_ctx *ctx, const catena_gradient_call *call) {
    return gradient_with(ctx, call, 1, call->x[0]);
}
SPOIL {
    the_function.gradient = gradient;
    the_plugin.n_kernels = 2;
}
