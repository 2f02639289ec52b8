/* A kernel: one implementation of one phase of a function, for one device and some dtypes. Any
 * plugin may register a kernel for any function. */
#ifndef CATENA_ABI_KERNEL_H
#define CATENA_ABI_KERNEL_H

#include "catena/abi/function.h"

enum { CATENA_PHASE_FORWARD = 0, CATENA_PHASE_BACKWARD = 1 };

/* The host's request for each output (forward) or each input gradient (backward). */
enum {
    CATENA_REQ_NONE = 0,  /* not wanted: the tensor is NULL */
    CATENA_REQ_WRITE = 1, /* memory is uninitialized: overwrite all of it */
    CATENA_REQ_ADD = 2 /* add to what is there; floating tensors, kernels with CATENA_KERNEL_ADDS */
};

enum {
    CATENA_CALL_TRAIN = 1u,         /* the thread's configuration, read once by the host */
    CATENA_CALL_DETERMINISTIC = 2u, /* bit-identical results for any number of threads */
    /* Products, convolutions and attention of float32 tensors may round their operands to this
     * type. Sums and results stay float32. A kernel may ignore it. At most one of the two. */
    CATENA_CALL_BFLOAT16 = 4u,
    CATENA_CALL_FLOAT16 = 8u
};

/* One call of one kernel, valid until the call returns. */
typedef struct catena_call {
    uint32_t struct_size;
    uint32_t flags; /* CATENA_CALL_* */
    int32_t phase;  /* CATENA_PHASE_* */
    uint32_t n_saved;
    const catena_function *function; /* whose kernel it is */
    const catena_value *attrs;       /* one per attribute, in schema order */
    uint32_t n_x;                    /* ports of x and gx, missing ones included */
    uint32_t n_y;                    /* ports of y and gy */
    const catena_tensor *const *x;   /* backward: NULL where not retained */
    catena_tensor *const *y;         /* backward: retained outputs, read-only, or NULL */
    const catena_tensor *const *gy;  /* backward; NULL: no gradient, i.e. zero */
    catena_tensor *const *gx;        /* backward; NULL: not wanted */
    catena_tensor *const *saved;     /* written by forward, read by the same variant's backward */
    const uint8_t *req;              /* CATENA_REQ_* for each y (forward) or gx (backward) */
    const uint64_t *targets;         /* backward: bit i % 64 of word i / 64: gx[i] is wanted */
    catena_stream *stream;           /* NULL on a synchronous device */
    void *scratch;                   /* memory requested by plan(), aligned to 64; or NULL */
    uint64_t scratch_bytes;          /* at scratch */
    void *dev;         /* of the device that the call runs on: what its backend's open() returned */
    int32_t device_id; /* and its ordinal */
    uint32_t reserved;
} catena_call;

/* The memory that run() needs, which the host allocates. Zeroed before plan(). */
typedef struct catena_plan {
    uint32_t struct_size;
    uint32_t n_saved;          /* as the kernel declares */
    uint64_t scratch_bytes;    /* 0: none */
    catena_meta *const *saved; /* forward: fill in one for each saved tensor */
} catena_plan;

enum {
    CATENA_KERNEL_ADDS = 1u,         /* supports CATENA_REQ_ADD; otherwise the host adds */
    CATENA_KERNEL_STRIDED = 2u,      /* accepts tensors that are not contiguous */
    CATENA_KERNEL_DETERMINISTIC = 4u /* always bit-identical; DETERMINISTIC calls need it */
};

/* The usual priorities; any number is allowed. Of the suitable kernels the host uses the one
 * that the user has pinned, else the one with the highest priority, else that of the plugin
 * loaded first. */
enum {
    CATENA_PRIORITY_REFERENCE = 0,
    CATENA_PRIORITY_PORTABLE = 100,
    CATENA_PRIORITY_VENDOR = 200,
    CATENA_PRIORITY_TUNED = 300
};

/* The description of a kernel. After run() has failed, the contents of the outputs are
 * undefined. */
typedef struct catena_kernel {
    uint32_t struct_size;
    uint32_t flags;       /* CATENA_KERNEL_* */
    int32_t phase;        /* CATENA_PHASE_* */
    int32_t priority;     /* CATENA_PRIORITY_*, or any other */
    const char *function; /* its full name */
    uint32_t version_min; /* versions of the function that it computes */
    uint32_t version_max; /* the last of them */
    const char *device;   /* name of a backend */
    const char *isa;      /* "" or e.g. "x86-64-v4": checked by the backend */

    /* n_types rows; each row has a dtype for each type_var of the function, in order of first
     * use in inputs, then outputs. */
    const catena_dtype *types;
    uint32_t n_types;

    /* NULL: any backward kernel may follow this forward kernel. Otherwise forward and backward
     * of the same variant in the same plugin are used together, with these retained sets and
     * saved tensors. */
    uint32_t n_saved;
    const char *variant;
    uint64_t retain_x;
    uint64_t retain_y;

    /* [any] 1 if the kernel supports this call, else 0. NULL: it supports all calls. Data
     * pointers may be NULL. */
    int32_t(CATENA_CALL *supports)(catena_ctx *ctx, const catena_call *call);
    /* [any] NULL: no scratch memory, nothing saved. */
    catena_status(CATENA_CALL *plan)(catena_ctx *ctx, const catena_call *call, catena_plan *plan);
    /* [compute] Does the work or launches it; must not allocate. May run again after
     * CATENA_E_NOMEM. */
    catena_status(CATENA_CALL *run)(catena_ctx *ctx, const catena_call *call);
    const char *name; /* of this implementation, for tables and messages: "winograd"; or NULL */
} catena_kernel;

#endif
