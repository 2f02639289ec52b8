/* Kernels that crash, hang, or ignore that a call of the host or of the C library failed. */
#define _GNU_SOURCE
#include <catena/abi/ext/blas.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../bad_plugins/module.h"

static int *volatile nowhere; /* volatile: the compiler would remove calls that only crash */
static void crash(void) { *nowhere = 1; }
RUN(crashes) {
    crash();
    return CATENA_OK;
}

// crash fails: values/survives determinism/concurrent faults/pieces fuzz/shapes
// Crashes in calls with many elements.
AFTER(crash, forward32, float, y) {
    if (n > 1000) crash();
}

// crash_always fails: values/survives
// says: in: org.example.square: runs x=(2,3)
// options: --only values
SPOIL(crash_always) { the_forward32.run = the_forward64.run = crashes; }

// crash_backward fails: values/survives
// One backward kernel crashes; the checks of the forward kernels still have verdicts.
// skips: gradients/kernel gradients/retained
// passes: inference/wrong-dtype values/layout values/guard values/empty determinism/threads
// options: --only inference --only values --only gradients --only determinism/threads
SPOIL(crash_backward) { the_backward32.run = crashes; }

BEFORE(empty, forward32) {
    if (size_of(call->x[0]) == 0) crash();
}
AFTER(twice, backward64, double, gx) {
    for (int64_t i = 0; i < n; ++i) gx[i] *= 2;
}
// crash_empty fails: values/survives values/size-one values/zero-d gradients/kernel
// The float32 kernel crashes on empty arrays; the float64 gradient is twice the correct one.
// skips: values/empty values/reached
// passes: values/dtypes values/layout gradients/targets determinism/threads
// options: --only values --only gradients --only determinism/threads
SPOIL(crash_empty) {
    spoil_empty();
    spoil_twice();
    the_backward64.flags = CATENA_KERNEL_DETERMINISTIC;
}

// crash_gradient fails: values/survives
// The composed gradient crashes; the checks that need no gradient still have verdicts.
// skips: gradients/composed gradients/targets
// passes: inference/wrong-dtype values/dtypes values/nan values/empty values/process
// options: --only inference --only values --only gradients
GRADIENTS(crash_gradient) {
    crash();
    return CATENA_OK;
}

// hang fails: values/survives
// Never returns for many elements; the time limit ends the call.
// options: --only values --only gradients --timeout 4
BEFORE(hang, forward32) {
    while (size_of(call->x[0]) > 1000) pause();
}

// leaves fails: values/survives
// A kernel ends the process with exit code 0.
// options: --only values --only gradients
BEFORE(leaves, forward32) {
    if (size_of(call->x[0]) > 1000) syscall(SYS_exit_group, 0);
}

static void *(*volatile allocate)(size_t) = malloc; /* the compiler would remove direct calls */

// allocation_late fails: faults/allocation
// infer() does not check the result of its ninth malloc().
// options: --only faults/allocation
INFERS(allocation_late) {
    for (int i = 1; i <= 9; ++i) {
        char *memory = allocate(64);
        if (memory == NULL && i < 9) return host->fail(ctx, CATENA_E_NOMEM, "[" NAME "] no memory");
        *(volatile char *)memory = 1;
        free(memory);
    }
    return infer_square(ctx, attrs, x, n_x, y, n_y);
}

// allocation_unchecked fails: faults/allocation
// infer() does not check the result of malloc().
INFERS(allocation_unchecked) {
    int64_t *shape = allocate(sizeof x[0]->shape);
    memcpy(shape, x[0]->shape, (size_t)x[0]->ndim * sizeof *shape);
    const catena_status status = infer_square(ctx, attrs, x, n_x, y, n_y);
    memcpy(y[0]->shape, shape, (size_t)x[0]->ndim * sizeof *shape);
    free(shape);
    return status;
}

// leaks_memory fails: faults/leak
// A kernel that frees none of the memory that it allocates.
// says: bytes more with each call: memory that nobody frees
INSTEAD(leaks_memory, forward32) {
    char *volatile name = malloc(40);
    if (name == NULL) return host->fail(ctx, CATENA_E_NOMEM, "[" NAME "] out of memory");
    memset(name, 0, 40);
    return forward32(ctx, call);
}

// needs_extension fails: faults/host-call skew/extensions
// A kernel assumes that an extension for matrix products is available.
INSTEAD(needs_extension, forward64) {
    const catena_blas *blas = host->extensions(ctx, CATENA_BLAS_1)[0];
    return blas->name == NULL ? CATENA_E_UNSUPPORTED : forward64(ctx, call);
}

struct work {
    const double *x;
    double *y;
    double scale[4];
};
static void CATENA_CALL piece(void *user, int64_t begin, int64_t end, int32_t slot) {
    const struct work *w = user;
    for (int64_t i = begin; i < end && slot < 4; ++i) w->y[i] = w->scale[slot] * w->x[i] * w->x[i];
}
// few_slots fails: faults/pieces
// A kernel supports only four slots of parallel_for().
INSTEAD(few_slots, forward64) {
    struct work w = {data_of(call->x[0]), data_of(call->y[0]), {SCALE, SCALE, SCALE, SCALE}};
    host->parallel_for(ctx, size_of(call->y[0]), 64, piece, &w);
    return CATENA_OK;
}
