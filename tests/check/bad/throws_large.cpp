// expect: faults/exception
// compile: -Wno-extra -Wno-missing-field-initializers -Wno-attributes
// A kernel throws an exception if an input is large.
#include <stdexcept>

#include "module.h"

static catena_status CATENA_CALL forward(catena_ctx *ctx, const catena_call *call) {
    const double *x = static_cast<const double *>(data_of(call->x[0]));
    for (int64_t i = 0; i < size_of(call->x[0]); ++i)
        if (x[i] > 1e17 && x[i] < 1e19) throw std::out_of_range("x");
    return forward_double(ctx, call);
}
SPOIL { forward64.run = forward; }
