// Never returns for many elements; the time limit ends the call.
// expect: values/survives
// options: --only values --only gradients --timeout 4
#define _GNU_SOURCE
#include <unistd.h>

#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    while (size_of(call->x[0]) > 1000) pause();
    return forward_float(ctx, call);
}
SPOIL { forward32.run = spoilt; }
