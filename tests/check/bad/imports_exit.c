// expect: static/imports
#include <stdlib.h>

#include "module.h"
static catena_status CATENA_CALL impatient(catena_ctx *ctx, const catena_call *call) {
    if (size_of(call->x[0]) > INT64_MAX - 1) exit(1);
    return forward_float(ctx, call);
}
SPOIL { forward32.run = impatient; }
