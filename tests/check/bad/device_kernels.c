// Kernels of a device of its own: they take for granted that malloc() has memory, and that no struct
// is larger than theirs.
// expect: faults/allocation skew/new-host
#include "backend.h"

static void *(*volatile allocate)(size_t) =
    malloc; /* else the compiler sees that it is not needed */

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
