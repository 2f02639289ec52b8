/* Faults of kernels that compute wrong values, or in a wrong way. */
#include <time.h>

#include "../../bad_plugins/module.h"

// size_one fails: values/size-one
// The result is wrong if there is a single element and at least one axis.
AFTER(size_one, forward32, float, y) {
    if (n == 1 && call->x[0]->dl.ndim > 0) y[0] += 1;
}

// zero_d fails: values/zero-d
AFTER(zero_d, forward32, float, y) {
    if (call->x[0]->dl.ndim == 0) y[0] += 1;
}

// wrong_dtype_values fails: values/dtypes
// The float32 results differ from the float64 results.
AFTER(wrong_dtype_values, forward32, float, y) {
    for (int64_t i = 0; i < n; ++i) y[i] *= 1.25f;
}

AFTER(overflow, forward32, float, y) {
    for (int64_t i = 0; i < n; ++i)
        if (y[i] > 1e38f) y[i] = 42;
}
// finite fails: values/dtypes
// Writes 42 if the result overflows float32.
SPOIL(finite) {
    spoil_overflow();
    the_examples[1] = "x=(4)[1e25,2e25] scale=0.5";
}

// wide_elements fails: values/guard fuzz/attributes fuzz/shapes fuzz/ranks
// The kernel for float32 treats its tensors as float64.
SPOIL(wide_elements) { the_forward32.run = forward64; }

// wide_reads fails: values/dtypes values/guard faults/exception skew/old-host fuzz/attributes fuzz/shapes fuzz/ranks
// The kernel for float32 reads its input as float64, past its end.
AFTER(wide_reads, forward32, float, y) {
    const double *x = data_of(call->x[0]);
    for (int64_t i = 0; i < n; ++i) y[i] = (float)(SCALE * x[i] * x[i]);
}

// writes_beside fails: values/guard fuzz/attributes fuzz/shapes fuzz/ranks
// Writes one element past the end of the output.
AFTER(writes_beside, forward32, float, y) { y[n] = 0; }

// writes_input fails: values/inputs
// Uses its input as scratch memory.
AFTER(writes_input, forward32, float, y) {
    if (n > 0) ((float *)data_of(call->x[0]))[0] = 0;
}

// writes_const fails: skew/old-host
// A kernel temporarily changes the extents of an input, which are const for it.
BEFORE(writes_const, forward64) {
    int64_t *shape = call->x[0]->dl.shape;
    for (int32_t d = 0; d < call->x[0]->dl.ndim; ++d) {
        shape[d] += 1;
        *(volatile int64_t *)&shape[d] -= 1;
    }
}

// layout fails: values/layout skew/old-host
// Results are wrong at unaligned addresses, as with vector code that requires alignment.
AFTER(layout, forward32, float, y) {
    if ((uintptr_t)data_of(call->x[0]) % 64 != 0)
        for (int64_t i = 0; i < n; ++i) y[i] += 1;
}

// empty_draws fails: values/empty
// Draws random numbers in a call without elements.
AFTER(empty_draws, forward32, float, y) {
    uint64_t seed, offset;
    if (n == 0) host->philox(ctx, 1, &seed, &offset);
}

// uninitialised fails: values/written
// Reads its output before it writes it.
INSTEAD(uninitialised, forward32) {
    float *y = data_of(call->y[0]);
    const int64_t n = size_of(call->x[0]);
    const int clean = n == 0 || y[n - 1] != y[n - 1];
    const catena_status status = forward32(ctx, call);
    if (!clean) y[n - 1] += 1;
    return status;
}

// rank_unchecked fails: fuzz/ranks
// infer() accepts any rank; given four axes, the kernel reads a fifth extent.
// options: --only fuzz/ranks --only inference --only values
BEFORE(rank_unchecked, forward32) {
    volatile int64_t fifth = 0;
    if (call->x[0]->dl.ndim == 4) fifth = call->x[0]->dl.shape[4];
}

static int32_t CATENA_CALL declines(catena_ctx *ctx, const catena_call *call) { return 0; }
// not_reached fails: values/reached
// A kernel that declines every call of its function's examples.
// says: no example reaches forward float32
SPOIL(not_reached) {
    more_kernels[0] = the_forward32;
    more_kernels[0].priority = CATENA_PRIORITY_TUNED;
    more_kernels[0].supports = declines;
    the_plugin.n_kernels = 5;
}

KERNELS(high, size_of(call->y[0]), Y(0) = (T)(1.00009 * SCALE) * X(0) * X(0))
KERNELS(low, size_of(call->y[0]), Y(0) = (T)(0.99991 * SCALE) * X(0) * X(0))
// variants_differ fails: values/variants
// Two kernels, each within its tolerance, deviate in opposite directions.
SPOIL(variants_differ) {
    the_forward32.run = high32;
    more_kernels[0] = the_forward32;
    more_kernels[0].run = low32;
    more_kernels[0].priority = CATENA_PRIORITY_TUNED;
    the_plugin.n_kernels = 5;
}

RUN(slow_forward64) {
    const clock_t start = clock();
    while (clock() - start < size_of(call->y[0]) * (CLOCKS_PER_SEC / 50000)) {
    }
    return forward64(ctx, call);
}
AFTER(hundredth, forward32, float, y) {
    if (n >= 100) y[99] += 1;
}
// slow_long_calls fails: values/dtypes
// float64 calls take long for each element, and float32 results are wrong from 100 elements on. The
// check makes shorter long calls than for other functions, and --reproduce makes the same ones.
// again: --reproduce 1:
// notes: no calls longer than
SPOIL(slow_long_calls) {
    the_forward64.run = slow_forward64;
    spoil_hundredth();
}

#define CUBIC(name, next)                                 \
    RUN(name) {                                           \
        const int64_t n = size_of(call->y[0]);            \
        volatile int64_t steps = 0;                       \
        for (int64_t i = 0; i < n * n; ++i)               \
            for (int64_t k = 0; k < n; k += 4) steps = k; \
        return next(ctx, call);                           \
    }
CUBIC(cubic32, forward32)
CUBIC(cubic64, forward64)
// good_cubic fails: nothing
// A large example of a function whose time grows with the cube of its extent.
// options: --timeout 15 --only values --only gradients --only determinism --only faults/pieces
SPOIL(good_cubic) {
    the_examples[0] = "x=(130)";
    the_examples[1] = NULL;
    the_forward32.run = cubic32, the_forward64.run = cubic64;
}

// not_repeated fails: determinism/repeated
// The result depends on the number of previous calls.
AFTER(not_repeated, forward32, float, y) {
    static int calls;
    if (n > 0) y[0] += (float)++calls * 1e-7f;
}

// shared_buffer fails: determinism/concurrent
// All calls share one static buffer.
AFTER(shared_buffer, forward32, float, y) {
    enum { most = 4 };
    static float first[most];
    const struct timespec moment = {0, 100000};
    const float *x = data_of(call->x[0]);
    if (n > most) n = most;
    for (int64_t i = 0; i < n; ++i) first[i] = (float)SCALE * x[i] * x[i];
    nanosleep(&moment, NULL);
    for (int64_t i = 0; i < n; ++i) y[i] = first[i];
}

// threads_differ fails: determinism/threads faults/pieces
// The result depends on the number of threads.
AFTER(threads_differ, forward32, float, y) {
    if (host->slots(ctx) > 1 && n > 0) y[n - 1] *= 1.25f;
}
