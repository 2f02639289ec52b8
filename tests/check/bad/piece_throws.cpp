// expect: values/nan faults/exception fuzz/attributes fuzz/shapes
// says: an exception leaves a piece of parallel_for(): x
// compile: -Wno-extra -Wno-missing-field-initializers -Wno-attributes
// A piece of parallel_for() throws an exception through the host if an input is NaN.
#include <stdexcept>

#include "module.h"

struct work {
    const double *x;
    double *y;
    double scale;
};
static void CATENA_CALL piece(void *user, int64_t begin, int64_t end, int32_t) {
    const work &w = *static_cast<const work *>(user);
    for (int64_t i = begin; i < end; ++i) {
        if (w.x[i] != w.x[i]) throw std::domain_error("x");
        w.y[i] = w.scale * w.x[i] * w.x[i];
    }
}
static catena_status CATENA_CALL forward(catena_ctx *ctx, const catena_call *call) {
    work w = {static_cast<const double *>(data_of(call->x[0])),
              static_cast<double *>(data_of(call->y[0])), call->attrs[0].v.f};
    host->parallel_for(ctx, size_of(call->y[0]), 64, piece, &w);
    return CATENA_OK;
}
SPOIL { forward64.run = forward; }
