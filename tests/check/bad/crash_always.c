// Crashes in every call.
// expect: values/survives
// says: in: org.example.square: runs x=(2,3)
// options: --only values
#include "module.h"
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    (void)ctx, (void)call;
    *(volatile int *)0 = 1;
    return CATENA_OK;
}
SPOIL { forward32.run = forward64.run = spoilt; }
