// Leaks a file descriptor in each call.
// expect: values/process
// says: expected no new file, got /dev/null
#include <fcntl.h>

#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    open("/dev/null", O_RDONLY);
    return forward_double(ctx, call);
}
SPOIL { forward64.run = spoilt; }
