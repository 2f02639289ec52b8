/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_EXT_KERNELS_H
#define CATENA_ABI_EXT_KERNELS_H
#include "catena/abi/host.h"
#define CATENA_KERNELS_1 "catena.kernels/1"
typedef struct catena_formula_kernel catena_formula_kernel;
enum {
    CATENA_FORMULA_ELEMENTWISE = 0,
    CATENA_FORMULA_REDUCTION = 1
};
enum {
    CATENA_FORMULA_KEEP_SOURCE = 1u
};
typedef struct catena_formula {
    uint32_t struct_size;
    int32_t kind;
    const char *name;
    const char *inputs;
    const char *outputs;
    const char *operation;
    const char *preamble;
    const char *loop_prep;
    const char *after_loop;
    const char *reduce;
    const char *finish;
    const char *identity;
    const char *reduce_type;
    const char *const *options;
    uint32_t flags;
    uint32_t reserved;
} catena_formula;
typedef struct catena_operand {
    const catena_tensor *tensor;
    catena_dtype dtype;
    uint32_t reserved;
    union {
        double f;
        int64_t i;
    } number;
} catena_operand;
enum {
    CATENA_FORMULA_AXES = 1u,
    CATENA_FORMULA_KEEPDIMS = 2u,
    CATENA_FORMULA_SHAPE = 4u
};
typedef struct catena_formula_call {
    uint32_t struct_size;
    uint32_t flags;
    const catena_operand *x;
    catena_tensor *const *y;
    uint32_t n_x;
    uint32_t n_y;
    const int32_t *axes;
    const int64_t *shape;
    int32_t n_axes;
    int32_t ndim;
    void *dev;
    catena_stream *stream;
    void *scratch;
    uint64_t scratch_bytes;
} catena_formula_call;
typedef struct catena_kernels_stats {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t compiled;
    uint64_t loaded;
    uint64_t hits;
    uint64_t evicted;
} catena_kernels_stats;
typedef struct catena_kernels {
    uint32_t struct_size;
    uint32_t reserved;
    catena_status(CATENA_CALL *create)(catena_ctx *ctx, const catena_formula *formula,
                                       const catena_formula_kernel **kernel);
    void(CATENA_CALL *arity)(const catena_formula_kernel *kernel, uint32_t *n_x, uint32_t *n_y);
    int32_t(CATENA_CALL *writes)(const catena_formula_kernel *kernel, uint32_t i);
    catena_status(CATENA_CALL *infer)(catena_ctx *ctx, const catena_formula_kernel *kernel,
                                      const catena_formula_call *call, catena_meta *const *y,
                                      uint64_t *scratch_bytes);
    catena_status(CATENA_CALL *run)(catena_ctx *ctx, const catena_formula_kernel *kernel,
                                    const catena_formula_call *call);
    void(CATENA_CALL *stats)(catena_kernels_stats *stats);
} catena_kernels;
#endif
