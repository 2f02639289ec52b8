// It prints in each call; at the end of the process alone that comes out.
// expect: values/process
// says: got: square!
#include <stdio.h>

#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    puts("square!");
    return forward_double(ctx, call);
}
SPOIL { forward64.run = spoilt; }
