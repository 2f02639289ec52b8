/* catena.kernels/1: kernels from formulas that are written at run time, for every device that has a
 * catena.compiler/1. The extension belongs to no device. */
#ifndef CATENA_ABI_EXT_KERNELS_H
#define CATENA_ABI_EXT_KERNELS_H

#include "catena/abi/host.h"

#define CATENA_KERNELS_1 "catena.kernels/1" /* its id */

typedef struct catena_formula_kernel catena_formula_kernel; /* owned by the extension, not freed */

enum {
    CATENA_FORMULA_ELEMENTWISE = 0, /* statements for each element */
    CATENA_FORMULA_REDUCTION = 1    /* many elements become one */
};

enum {
    CATENA_FORMULA_KEEP_SOURCE = 1u /* keep the compiled source in the cache folder */
};

/* The source of a kernel. Strings that are empty may be NULL. An argument list has a dtype and a
 * name for each argument: "T x, raw float32 y, const float* z". The dtype is a name or a
 * placeholder: one capital letter, which stands for the dtype of the first argument with this
 * letter. A plain argument is the value of one element; plain arrays are broadcast against each
 * other. A raw argument or a pointer is a whole array, to be indexed; a pointer without const may
 * also be written to. */
typedef struct catena_formula {
    uint32_t struct_size;
    int32_t kind;        /* CATENA_FORMULA_* */
    const char *name;    /* an identifier */
    const char *inputs;  /* argument list */
    const char *outputs; /* argument list; may be empty if the formula writes to an input */
    /* Elementwise: statements that use the arguments, the index i and the number n of elements.
     * Reduction: an expression for the value of element i of the n elements that are reduced. */
    const char *operation;
    /* Before the kernel: includes, types, functions. Placeholders are types. */
    const char *preamble;
    /* Elementwise: statements before and after the loop over a thread's elements. */
    const char *loop_prep;
    const char *after_loop;
    /* Reduction. reduce: an expression that combines a and b, associative and commutative.
     * finish: statements that compute the outputs from a, the index j of the output and n.
     * identity: the neutral value, or NULL if there is none. reduce_type: the type of a and b, at
     * most 64 bytes; NULL for the type of the first output. */
    const char *reduce;
    const char *finish;
    const char *identity;
    const char *reduce_type;
    const char *const *options; /* for the compiler; NULL-terminated, or NULL */
    uint32_t flags;             /* CATENA_FORMULA_KEEP_SOURCE */
    uint32_t reserved;
} catena_formula;

/* An argument of a call: an array or a number; frozen. */
typedef struct catena_operand {
    const catena_tensor *tensor; /* NULL if the argument is a number */
    catena_dtype dtype;          /* of the number, before conversion to the declared dtype */
    uint32_t reserved;
    union {
        double f;  /* if dtype is floating-point */
        int64_t i; /* otherwise */
    } number;      /* if tensor is NULL */
} catena_operand;

enum {
    CATENA_FORMULA_AXES = 1u,     /* reductions: over axes[0 .. n_axes); otherwise over all axes */
    CATENA_FORMULA_KEEPDIMS = 2u, /* reductions: keep the reduced axes, with extent 1 */
    CATENA_FORMULA_SHAPE = 4u     /* the index range is shape[0 .. ndim) */
};

/* One call. Its arrays are on ctx's device. */
typedef struct catena_formula_call {
    uint32_t struct_size;
    uint32_t flags;          /* CATENA_FORMULA_AXES ... */
    const catena_operand *x; /* inputs, as declared */
    catena_tensor *const *y; /* outputs; infer(): NULL, or NULL entries, for those to be made */
    uint32_t n_x;
    uint32_t n_y;
    const int32_t *axes;  /* may be negative, as in NumPy */
    const int64_t *shape; /* if CATENA_FORMULA_SHAPE is set */
    int32_t n_axes;
    int32_t ndim;
    void *dev;              /* as in catena_call */
    catena_stream *stream;  /* as in catena_call */
    void *scratch;          /* run(): the bytes that infer() asked for, aligned to 64 */
    uint64_t scratch_bytes; /* size of scratch */
} catena_formula_call;

/* Since the start of the process. */
typedef struct catena_kernels_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t compiled; /* by a compiler */
    uint64_t loaded;   /* from a folder of binaries */
    uint64_t hits;     /* calls that found their kernel in memory */
    uint64_t evicted;  /* binaries deleted because the folder was full */
} catena_kernels_stats;

/* The table of the extension. */
typedef struct catena_kernels {
    uint32_t struct_size;
    uint32_t reserved;
    /* [any] Checks the argument lists; compiles nothing. Returns the same kernel for equal
     * formulas, so a repeated call costs only a lookup. */
    catena_status(CATENA_CALL *create)(catena_ctx *ctx, const catena_formula *formula,
                                       const catena_formula_kernel **kernel);
    /* [any] The numbers of inputs and outputs. */
    void(CATENA_CALL *arity)(const catena_formula_kernel *kernel, uint32_t *n_x, uint32_t *n_y);
    /* [any] 1 if the kernel writes into input i. */
    int32_t(CATENA_CALL *writes)(const catena_formula_kernel *kernel, uint32_t i);
    /* [any] Checks the call. Sets shape and dtype of the outputs, but not their struct_size and
     * device_type. y[k] is left unchanged if call->y[k] is not NULL. scratch_bytes: the size of the
     * scratch memory that run() needs. */
    catena_status(CATENA_CALL *infer)(catena_ctx *ctx, const catena_formula_kernel *kernel,
                                      const catena_formula_call *call, catena_meta *const *y,
                                      uint64_t *scratch_bytes);
    /* [compute] Loads or compiles the kernel if it is not in memory yet, then runs or enqueues it.
     * An output may use exactly the memory of an input, but must not overlap it partially. */
    catena_status(CATENA_CALL *run)(catena_ctx *ctx, const catena_formula_kernel *kernel,
                                    const catena_formula_call *call);
    /* [any] The caller sets struct_size. */
    void(CATENA_CALL *stats)(catena_kernels_stats *stats);
} catena_kernels;

#endif
