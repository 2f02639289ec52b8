// Backward takes the number of elements from x, which is not retained.
// expect: gradients/retained
// says: it reads what is not retained: x (not in retain_x)
#include "module.h"
#define ONES(T)                                                                           \
    static catena_status CATENA_CALL copy_##T(catena_ctx *ctx, const catena_call *call) { \
        (void)ctx;                                                                        \
        for (int64_t i = 0, n = size_of(call->y[0]); i < n; ++i)                          \
            ((T *)data_of(call->y[0]))[i] = ((const T *)data_of(call->x[0]))[i];          \
        return CATENA_OK;                                                                 \
    }                                                                                     \
    static catena_status CATENA_CALL back_##T(catena_ctx *ctx, const catena_call *call) { \
        (void)ctx;                                                                        \
        for (int64_t i = 0, n = size_of(call->x[0]); i < n; ++i)                          \
            ((T *)data_of(call->gx[0]))[i] = ((const T *)data_of(call->gy[0]))[i];        \
        return CATENA_OK;                                                                 \
    }
ONES(float)
ONES(double)
SPOIL {
    the_function.retain_x = 0;
    forward32.run = copy_float, forward64.run = copy_double;
    backward32.run = back_float, backward64.run = back_double;
    backward32.flags = backward64.flags = CATENA_KERNEL_DETERMINISTIC;
}
