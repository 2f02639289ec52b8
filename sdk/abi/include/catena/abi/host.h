/* The host's services. A plugin uses the host only through this table and links nothing of it. */
#ifndef CATENA_ABI_HOST_H
#define CATENA_ABI_HOST_H

#include "catena/abi/kernel.h"

enum { CATENA_LOG_DEBUG = 0, CATENA_LOG_INFO = 1, CATENA_LOG_WARNING = 2, CATENA_LOG_ERROR = 3 };

/* [pool] One piece of a parallel_for: elements begin .. end. slot < slots() names the worker. */
typedef void(CATENA_CALL *catena_range_fn)(void *user, int64_t begin, int64_t end, int32_t slot);

/* Always stays valid. No service within the host's struct_size is NULL. */
struct catena_host {
    uint32_t struct_size;
    uint16_t abi_major;  /* CATENA_ABI_MAJOR of the host */
    uint16_t abi_minor;  /* CATENA_ABI_MINOR of the host */
    const char *name;    /* "catena" */
    const char *version; /* of the program, for display */

    /* [any] ctx may be NULL. */
    void(CATENA_CALL *log)(catena_ctx *ctx, int32_t level, const char *text);

    /* [any] Stores a copy of text as the reason of the failure and returns status, so a kernel
     * can end with `return host->fail(ctx, CATENA_E_SHAPE, "...")`. The first text of a call is
     * kept. */
    catena_status(CATENA_CALL *fail)(catena_ctx *ctx, catena_status status, const char *text);

    /* [compute] Runs fn on 0 .. n with the threads of the call's device and returns when all
     * pieces are done. Pieces start at multiples of grain, so results that are computed per
     * grain do not depend on the number of threads. A grain below 1 counts as 1. Nested calls
     * run on the calling thread. */
    void(CATENA_CALL *parallel_for)(catena_ctx *ctx, int64_t n, int64_t grain, catena_range_fn fn,
                                    void *user);
    int32_t(CATENA_CALL *slots)(catena_ctx *ctx); /* [any] workers that parallel_for may use */

    /* [compute] Reserves n blocks of four 32-bit random numbers of Philox4x32-10 for this call.
     * The key is seed; the counter is offset + i, for i < n, in its low 64 bits. The numbers
     * depend on nothing else, so a result is the same for any number of threads and on any
     * device. */
    catena_status(CATENA_CALL *philox)(catena_ctx *ctx, uint64_t n, uint64_t *seed,
                                       uint64_t *offset);

    /* [any] The thread's configuration: "train", "deterministic", "enable_backprop" ... */
    int64_t(CATENA_CALL *config)(catena_ctx *ctx, const char *key, int64_t otherwise);

    /* [any] The tables that plugins provide for the call's device under this id
     * ("catena.blas/1"), highest priority first, NULL-terminated; empty if there are none. If
     * ctx is NULL or has no device: those that belong to no device. Owned by the host, stays
     * valid. */
    const void *const *(CATENA_CALL *extensions)(catena_ctx *ctx, const char *id);

    /* [any] Looks up a function by its full name. *out belongs to the host and stays valid. Keep
     * it, because find() takes a lock. Fails with a message if no plugin has the function. */
    catena_status(CATENA_CALL *find)(catena_ctx *ctx, const char *function,
                                     const catena_callable **out);
    /* [compute] Calls a function on variables; only within catena_function.gradient and compose
     * (otherwise CATENA_E_INVALID). Attributes that are not passed have their defaults. An entry of
     * x may be NULL for a missing optional input. Fills y[0 .. n_y), at most the function's
     * outputs; they belong to the host and live until the callback returns. */
    catena_status(CATENA_CALL *call)(catena_ctx *ctx, const catena_callable *function,
                                     const catena_named_value *attrs, uint32_t n_attrs,
                                     catena_var *const *x, uint32_t n_x, catena_var **y,
                                     uint32_t n_y);
    /* [any] The shape and dtype of a variable; fills shape[0 .. ndim). The caller sets
     * struct_size, and nothing beyond it is written. */
    catena_status(CATENA_CALL *meta)(catena_ctx *ctx, const catena_var *var, catena_meta *out);

    /* [any] A further extension of the host by id, or NULL. */
    const void *(CATENA_CALL *get_extension)(const catena_host *host, const char *id);

    /* [compute] The elements of an input of the running compose() whose port is CATENA_PORT_HOST:
     * dense, row-major, in host memory, valid until the callback returns. CATENA_E_INVALID for
     * every other variable and in every other callback. */
    catena_status(CATENA_CALL *read)(catena_ctx *ctx, const catena_var *var, const void **elements);
};

#endif
