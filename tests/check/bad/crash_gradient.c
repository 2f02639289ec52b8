// The composed gradient crashes; the checks that need no gradient still have verdicts.
// expect: values/survives
// skips: gradients/composed gradients/targets
// passes: inference/wrong-dtype values/dtypes values/nan values/empty values/process
// options: --only inference --only values --only gradients
#include "composed.h"
static catena_status CATENA_CALL gradient(catena_ctx *ctx, const catena_gradient_call *call) {
    (void)ctx, (void)call;
    *(volatile int *)0 = 1;
    return CATENA_OK;
}
SPOIL {
    the_function.gradient = gradient;
    the_plugin.n_kernels = 2;
}
