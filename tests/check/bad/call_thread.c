// The first call starts a thread that never ends.
// expect: values/process
// says: expected no thread of its own, got 1 more
#define _GNU_SOURCE
#include <pthread.h>
#include <unistd.h>

#include "module.h"
static void *wait(void *nothing) {
    for (;;) pause();
    return nothing;
}
static catena_status CATENA_CALL spoilt(catena_ctx *ctx, const catena_call *call) {
    static int calls;
    pthread_t thread;
    if (calls++ == 0) pthread_create(&thread, NULL, wait, NULL);
    return forward_double(ctx, call);
}
SPOIL { forward64.run = spoilt; }
