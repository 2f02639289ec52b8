// Prints in each call; the output is buffered until the process ends.
// expect: values/process
// says: got: square!
#include <stdio.h>

#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    puts("square!");
    return forward_double(ctx, call);
}
SPOIL { forward64.run = spoilt; }
