// A large example of a function whose time grows with the cube of its extent.
// expect: nothing
// options: --timeout 15 --only values --only gradients --only determinism --only faults/pieces
#include "module.h"
#define CUBIC(T)                                                                           \
    static catena_status CATENA_CALL cubic_##T(catena_ctx *ctx, const catena_call *call) { \
        const int64_t n = size_of(call->y[0]);                                             \
        volatile int64_t steps = 0;                                                        \
        for (int64_t i = 0; i < n; ++i)                                                    \
            for (int64_t j = 0; j < n; ++j)                                                \
                for (int64_t k = 0; k < n; k += 4) steps = k;                              \
        (void)steps;                                                                       \
        return forward_##T(ctx, call);                                                     \
    }
CUBIC(float)
CUBIC(double)
SPOIL {
    the_examples[0] = "x=(130)";
    the_examples[1] = NULL;
    forward32.run = cubic_float, forward64.run = cubic_double;
}
