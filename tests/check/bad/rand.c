// Draws its random numbers from the C library.
// expect: static/imports determinism/repeated
#include <stdlib.h>
#include "module.h"
#define SPOILT(T)                                                                           \
    static catena_status CATENA_CALL spoilt_##T(catena_ctx *ctx, const catena_call *call) { \
        const catena_status status = forward_##T(ctx, call);                                \
        T *y = (T *)data_of(call->y[0]);                                                    \
        for (int64_t i = 0, n = size_of(call->y[0]); i < n; ++i) y[i] *= (T)(rand() % 100); \
        return status;                                                                      \
    }
SPOILT(float)
SPOILT(double)
SPOIL {
    forward32.run = spoilt_float;
    forward64.run = spoilt_double;
}
