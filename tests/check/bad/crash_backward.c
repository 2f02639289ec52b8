// One backward kernel crashes; the checks of the forward kernels still have verdicts.
// expect: values/survives
// skips: gradients/kernel gradients/retained
// passes: inference/wrong-dtype values/layout values/guard values/empty determinism/threads
// options: --only inference --only values --only gradients --only determinism/threads
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    (void)ctx, (void)call;
    *(volatile int *)0 = 1;
    return CATENA_OK;
}
SPOIL { backward32.run = spoilt; }
