/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_TENSOR_H
#define CATENA_ABI_TENSOR_H
#include "catena/abi/base.h"
enum { CATENA_MAX_NDIM = 16 };
enum {
    CATENA_CODE_INT = 0,
    CATENA_CODE_UINT = 1,
    CATENA_CODE_FLOAT = 2,
    CATENA_CODE_BFLOAT = 4,
    CATENA_CODE_BOOL = 6
};
typedef struct catena_dtype {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
} catena_dtype;
typedef struct catena_dl_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t ndim;
    catena_dtype dtype;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} catena_dl_tensor;
enum {
    CATENA_TENSOR_READONLY = 1u,
    CATENA_TENSOR_CONTIGUOUS = 2u
};
typedef struct catena_tensor {
    uint32_t struct_size;
    uint32_t flags;
    catena_dl_tensor dl;
    uint64_t nbytes;
    uint32_t align_log2;
    uint32_t reserved;
    void *host_ref;
} catena_tensor;
typedef struct catena_meta {
    uint32_t struct_size;
    int32_t ndim;
    catena_dtype dtype;
    int32_t device_type;
    int64_t shape[CATENA_MAX_NDIM];
} catena_meta;
#endif
