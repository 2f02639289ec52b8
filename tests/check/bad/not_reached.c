// A kernel that declines every call of its function's examples.
// expect: values/reached
// says: no example reaches forward float32
#include "module.h"
static int32_t CATENA_CALL declines(catena_ctx *ctx, const catena_call *call) {
    (void)ctx, (void)call;
    return 0;
}
static catena_kernel spare;
SPOIL {
    spare = forward32;
    spare.priority = CATENA_PRIORITY_TUNED;
    spare.supports = declines;
    the_kernels[the_plugin.n_kernels++] = &spare;
}
