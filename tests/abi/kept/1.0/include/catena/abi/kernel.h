/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_KERNEL_H
#define CATENA_ABI_KERNEL_H
#include "catena/abi/function.h"
enum { CATENA_PHASE_FORWARD = 0, CATENA_PHASE_BACKWARD = 1 };
enum {
    CATENA_REQ_NONE = 0,
    CATENA_REQ_WRITE = 1,
    CATENA_REQ_ADD = 2
};
enum {
    CATENA_CALL_TRAIN = 1u,
    CATENA_CALL_DETERMINISTIC = 2u,
    CATENA_CALL_BFLOAT16 = 4u,
    CATENA_CALL_FLOAT16 = 8u
};
typedef struct catena_call {
    uint32_t struct_size;
    uint32_t flags;
    int32_t phase;
    uint32_t n_saved;
    const catena_function *function;
    const catena_value *attrs;
    uint32_t n_x;
    uint32_t n_y;
    const catena_tensor *const *x;
    catena_tensor *const *y;
    const catena_tensor *const *gy;
    catena_tensor *const *gx;
    catena_tensor *const *saved;
    const uint8_t *req;
    const uint64_t *targets;
    catena_stream *stream;
    void *scratch;
    uint64_t scratch_bytes;
    void *dev;
    int32_t device_id;
    uint32_t reserved;
} catena_call;
typedef struct catena_plan {
    uint32_t struct_size;
    uint32_t n_saved;
    uint64_t scratch_bytes;
    catena_meta *const *saved;
} catena_plan;
enum {
    CATENA_KERNEL_ADDS = 1u,
    CATENA_KERNEL_STRIDED = 2u,
    CATENA_KERNEL_DETERMINISTIC = 4u
};
enum {
    CATENA_PRIORITY_REFERENCE = 0,
    CATENA_PRIORITY_PORTABLE = 100,
    CATENA_PRIORITY_VENDOR = 200,
    CATENA_PRIORITY_TUNED = 300
};
typedef struct catena_kernel {
    uint32_t struct_size;
    uint32_t flags;
    int32_t phase;
    int32_t priority;
    const char *function;
    uint32_t version_min;
    uint32_t version_max;
    const char *device;
    const char *isa;
    const catena_dtype *types;
    uint32_t n_types;
    uint32_t n_saved;
    const char *variant;
    uint64_t retain_x;
    uint64_t retain_y;
    int32_t(CATENA_CALL *supports)(catena_ctx *ctx, const catena_call *call);
    catena_status(CATENA_CALL *plan)(catena_ctx *ctx, const catena_call *call, catena_plan *plan);
    catena_status(CATENA_CALL *run)(catena_ctx *ctx, const catena_call *call);
    const char *name;
} catena_kernel;
#endif
