// Kernels for a device of the plugin's own backend: they do not check the result of malloc(), and
// they refuse a struct that is larger than the one they know.
// expect: faults/allocation skew/new-host
#include "backend.h"

static void *(*volatile allocate)(size_t) =
    malloc; /* volatile: the compiler would remove the calls */

static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    volatile char *byte = allocate(1);
    *byte = 1;
    free((void *)byte);
    if (call->struct_size != sizeof *call) return CATENA_E_INVALID;
    return forward_double(ctx, call);
}
SPOIL {
    make_backend();
    forward32.device = forward64.device = "shelf";
    forward64.run = spoilt;
}
