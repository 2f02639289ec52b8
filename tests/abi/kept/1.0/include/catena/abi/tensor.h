/* Element types, tensors (DLPack's layout in a growable struct) and shapes without data. */
#ifndef CATENA_ABI_TENSOR_H
#define CATENA_ABI_TENSOR_H

#include "catena/abi/base.h"

enum { CATENA_MAX_NDIM = 16 };

/* DLPack's DLDataTypeCode. */
enum {
    CATENA_CODE_INT = 0,
    CATENA_CODE_UINT = 1,
    CATENA_CODE_FLOAT = 2,
    CATENA_CODE_BFLOAT = 4,
    CATENA_CODE_BOOL = 6
};

/* Binary compatible with DLDataType; frozen. lanes is 1. */
typedef struct catena_dtype {
    uint8_t code; /* CATENA_CODE_* */
    uint8_t bits; /* of one element */
    uint16_t lanes;
} catena_dtype;

/* Binary compatible with DLTensor; frozen. Elements are at (char *)data + byte_offset. */
typedef struct catena_dl_tensor {
    void *data;          /* may be NULL if an extent is 0, and in supports() and plan() */
    int32_t device_type; /* DLPack's DLDeviceType */
    int32_t device_id;   /* the ordinal */
    int32_t ndim;
    catena_dtype dtype;
    int64_t *shape;   /* ndim extents; the product of nonzero ones is at most 2^59 */
    int64_t *strides; /* in elements; not NULL if ndim > 0 */
    uint64_t byte_offset;
} catena_dl_tensor;

enum {
    CATENA_TENSOR_READONLY = 1u,  /* the callee must not write */
    CATENA_TENSOR_CONTIGUOUS = 2u /* dense, row-major */
};

/* A tensor that is passed to one call. The host owns the memory. Kernels get CONTIGUOUS tensors
 * on the call's device unless they declare CATENA_KERNEL_STRIDED. Outputs do not overlap each
 * other or an input. */
typedef struct catena_tensor {
    uint32_t struct_size;
    uint32_t flags;      /* CATENA_TENSOR_* */
    catena_dl_tensor dl; /* the tensor as DLPack has it */
    uint64_t nbytes;     /* readable from data + byte_offset */
    uint32_t align_log2; /* actual alignment of the first element */
    uint32_t reserved;
    void *host_ref; /* the host's; opaque */
} catena_tensor;

/* Shape and type without data, for inference and plans. shape[0 .. ndim) is valid, the rest is
 * uninitialized. */
typedef struct catena_meta {
    uint32_t struct_size;
    int32_t ndim; /* 0 .. CATENA_MAX_NDIM */
    catena_dtype dtype;
    int32_t device_type; /* DLPack's DLDeviceType */
    int64_t shape[CATENA_MAX_NDIM];
} catena_meta;

#endif
