// The kernel declares CATENA_KERNEL_ADDS, but overwrites instead of adding.
// expect: values/add
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    static const uint8_t write[] = {CATENA_REQ_WRITE};
    catena_call other = *call;
    other.req = write;
    return backward_float(ctx, &other);
}
SPOIL { backward32.run = spoilt; }
