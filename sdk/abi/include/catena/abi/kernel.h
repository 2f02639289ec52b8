/* A kernel: one implementation of one phase of a function, for one device and some dtypes. Any
 * plugin may register a kernel for any function. */
#ifndef CATENA_ABI_KERNEL_H
#define CATENA_ABI_KERNEL_H

#include "catena/abi/function.h"

enum { CATENA_PHASE_FORWARD = 0, CATENA_PHASE_BACKWARD = 1 };

/* What the host asks for each output (forward) or each input gradient (backward). */
enum {
    CATENA_REQ_NONE = 0,  /* not wanted: the tensor is NULL */
    CATENA_REQ_WRITE = 1, /* memory is uninitialised: overwrite all of it */
    CATENA_REQ_ADD = 2 /* add to what is there; floating tensors, kernels with CATENA_KERNEL_ADDS */
};

enum {
    CATENA_CALL_TRAIN = 1u,        /* the thread's configuration, read once by the host */
    CATENA_CALL_DETERMINISTIC = 2u /* same bits for any number of threads */
};

/* One call of one kernel. Nothing in it outlives the call. */
typedef struct catena_call {
    uint32_t struct_size;
    uint32_t flags; /* CATENA_CALL_* */
    int32_t phase;  /* CATENA_PHASE_* */
    uint32_t n_saved;
    const catena_function *function; /* whose kernel it is */
    const catena_value *attrs;       /* dense, in schema order */
    uint32_t n_x;                    /* ports of x and gx, missing ones included */
    uint32_t n_y;                    /* ports of y and gy */
    const catena_tensor *const *x;   /* backward: NULL where not retained */
    catena_tensor *const *y;         /* backward: retained outputs, read-only, or NULL */
    const catena_tensor *const *gy;  /* backward; NULL entry: no gradient reached it, i.e. zero */
    catena_tensor *const *gx;        /* backward; NULL entry: not a target */
    catena_tensor *const *saved;     /* forward writes, the backward of the same variant reads */
    const uint8_t *req;              /* CATENA_REQ_* for each y (forward) or gx (backward) */
    const uint64_t *targets;         /* backward: bit i % 64 of word i / 64: gx[i] is wanted */
    catena_stream *stream;           /* NULL on a synchronous device */
    void *scratch;                   /* the bytes that plan() asked for, aligned to 64, else NULL */
    uint64_t scratch_bytes;          /* at scratch */
    void *dev;         /* of the device that the call runs on: what its backend's open() returned */
    int32_t device_id; /* and its ordinal */
    uint32_t reserved;
} catena_call;

/* What run() will need; the host allocates it. Zeroed before plan(). */
typedef struct catena_plan {
    uint32_t struct_size;
    uint32_t n_saved;          /* as the kernel declares */
    uint64_t scratch_bytes;    /* 0: none */
    catena_meta *const *saved; /* forward: fill in one for each saved tensor */
} catena_plan;

enum {
    CATENA_KERNEL_ADDS = 1u,         /* honours CATENA_REQ_ADD; else the host adds for it */
    CATENA_KERNEL_STRIDED = 2u,      /* takes tensors that are not contiguous */
    CATENA_KERNEL_DETERMINISTIC = 4u /* always the same bits; else not chosen under DETERMINISTIC */
};

/* Usual priorities; any number will do. Of the eligible kernels the host takes the user's pin, else
 * the highest priority, else the plugin loaded first. */
enum {
    CATENA_PRIORITY_REFERENCE = 0,
    CATENA_PRIORITY_PORTABLE = 100,
    CATENA_PRIORITY_VENDOR = 200,
    CATENA_PRIORITY_TUNED = 300
};

/* What the host knows of a kernel. After a failure of run() the outputs are unspecified. */
typedef struct catena_kernel {
    uint32_t struct_size;
    uint32_t flags;       /* CATENA_KERNEL_* */
    int32_t phase;        /* CATENA_PHASE_* */
    int32_t priority;     /* CATENA_PRIORITY_*, or any other */
    const char *function; /* its full name */
    uint32_t version_min; /* versions of the function that it computes */
    uint32_t version_max; /* the last of them */
    const char *device;   /* name of a backend */
    const char *isa;      /* "" or e.g. "x86-64-v4": asked of the backend before any call */

    /* n_types rows; a row has a dtype for each type_var of the function, in order of first use over
     * inputs, then outputs. */
    const catena_dtype *types;
    uint32_t n_types;

    /* NULL: any backward kernel may follow this forward kernel. Else forward and backward of the
     * same variant in the same plugin belong together, with these retained sets and saved tensors. */
    uint32_t n_saved;
    const char *variant;
    uint64_t retain_x;
    uint64_t retain_y;

    /* [any] 1 if it can do this call, 0 if not. NULL: it can do all. Data pointers may be NULL. */
    int32_t(CATENA_CALL *supports)(catena_ctx *ctx, const catena_call *call);
    /* [any] NULL: no scratch, nothing saved. */
    catena_status(CATENA_CALL *plan)(catena_ctx *ctx, const catena_call *call, catena_plan *plan);
    /* [compute] Enqueues or does the work; allocates nothing. May run again after CATENA_E_NOMEM. */
    catena_status(CATENA_CALL *run)(catena_ctx *ctx, const catena_call *call);
    const char *name; /* of this implementation, for tables and messages: "winograd"; or NULL */
} catena_kernel;

#endif
