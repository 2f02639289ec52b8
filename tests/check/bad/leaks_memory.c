// A kernel that frees none of the memory that it allocates.
// expect: faults/leak
// says: got 48 bytes more with each call: memory that nobody frees
#include <stdlib.h>
#include <string.h>

#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    char *volatile name = malloc(40);
    if (name == NULL) return host->fail(ctx, CATENA_E_NOMEM, "[" NAME "] out of memory");
    memset(name, 0, 40);
    return forward_float(ctx, call);
}
SPOIL { forward32.run = spoilt; }
