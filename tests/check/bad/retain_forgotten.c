// The gradient uses only the sign of x, which is not retained: NaN in x would not make it NaN.
// expect: gradients/retained
// says: it reads what is not retained: x (not in retain_x)
#include "module.h"
#define SIGN(T)                                                                                  \
    static catena_status CATENA_CALL size_##T(catena_ctx *ctx, const catena_call *call) {        \
        const T *x = (const T *)data_of(call->x[0]);                                             \
        T *y = (T *)data_of(call->y[0]);                                                         \
        (void)ctx;                                                                               \
        for (int64_t i = 0, n = size_of(call->y[0]); i < n; ++i) y[i] = x[i] > 0 ? x[i] : -x[i]; \
        return CATENA_OK;                                                                        \
    }                                                                                            \
    static catena_status CATENA_CALL sign_##T(catena_ctx *ctx, const catena_call *call) {        \
        const T *x = (const T *)data_of(call->x[0]);                                             \
        const T *gy = (const T *)data_of(call->gy[0]);                                           \
        T *gx = (T *)data_of(call->gx[0]);                                                       \
        (void)ctx;                                                                               \
        for (int64_t i = 0, n = size_of(call->gx[0]); i < n; ++i)                                \
            gx[i] = x[i] > 0 ? gy[i] : -gy[i];                                                   \
        return CATENA_OK;                                                                        \
    }
SIGN(float)
SIGN(double)
SPOIL {
    the_function.retain_x = 0;
    forward32.run = size_float, forward64.run = size_double;
    backward32.run = sign_float, backward64.run = sign_double;
    backward32.flags = backward64.flags = CATENA_KERNEL_DETERMINISTIC;
}
