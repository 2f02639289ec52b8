// A kernel in C++ that deletes none of the memory that it allocates.
// expect: faults/leak
// once: faults/leak
// says: got 48 bytes more with each call: memory that nobody frees
// compile: -Wno-extra -Wno-missing-field-initializers -Wno-attributes
#include <new>

#include "module.h"

static char *volatile made;
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    made = new (std::nothrow) char[40]();
    if (made == nullptr) return host->fail(ctx, CATENA_E_NOMEM, "[" NAME "] out of memory");
    return forward_float(ctx, call);
}
SPOIL { forward32.run = spoilt; }
