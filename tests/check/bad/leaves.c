// A kernel ends the process with exit code 0.
// expect: values/survives
// options: --only values --only gradients
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>

#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    if (size_of(call->x[0]) > 1000) syscall(SYS_exit_group, 0);
    return forward_float(ctx, call);
}
SPOIL { forward32.run = spoilt; }
