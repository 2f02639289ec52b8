// Two kernels, each within its tolerance, deviate in opposite directions.
// expect: values/variants
#include "module.h"
#define OFF(name, factor)                                                             \
    static catena_status CATENA_CALL name(catena_ctx *ctx, const catena_call *call) { \
        const catena_status status = forward_float(ctx, call);                        \
        float *y = (float *)data_of(call->y[0]);                                      \
        for (int64_t i = 0, n = size_of(call->y[0]); i < n; ++i) y[i] *= factor;      \
        return status;                                                                \
    }
OFF(high, 1.00009f)
OFF(low, 0.99991f)
static catena_kernel tuned = KERNEL(CATENA_PHASE_FORWARD, float32, low);
SPOIL {
    forward32.run = high;
    tuned.priority = CATENA_PRIORITY_TUNED;
    the_kernels[4] = &tuned;
    the_plugin.n_kernels = 5;
}
