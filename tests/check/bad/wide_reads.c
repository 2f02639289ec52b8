// expect: values/dtypes values/guard faults/exception skew/old-host fuzz/attributes fuzz/shapes fuzz/ranks
// The kernel for float32 reads its input as float64, past its end.
#include "module.h"
static catena_status CATENA_CALL forward(catena_ctx *ctx, const catena_call *call) {
    const double *x = (const double *)data_of(call->x[0]);
    float *y = (float *)data_of(call->y[0]);
    (void)ctx;
    for (int64_t i = 0, n = size_of(call->y[0]); i < n; ++i)
        y[i] = (float)(call->attrs[0].v.f * x[i] * x[i]);
    return CATENA_OK;
}
SPOIL { forward32.run = forward; }
