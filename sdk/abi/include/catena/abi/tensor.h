/* Element types, tensors (DLPack's layout in a growable envelope) and data-free descriptions. */
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

/* Bit for bit DLDataType; frozen. lanes is 1. */
typedef struct catena_dtype {
    uint8_t code; /* CATENA_CODE_* */
    uint8_t bits; /* of one element */
    uint16_t lanes;
} catena_dtype;

/* Bit for bit DLTensor; frozen. Elements lie at (char *)data + byte_offset. */
typedef struct catena_dl_tensor {
    void *data;          /* may be NULL where a dimension is 0, and in supports() and plan() */
    int32_t device_type; /* DLPack's DLDeviceType */
    int32_t device_id;   /* the ordinal */
    int32_t ndim;
    catena_dtype dtype;
    int64_t *shape;   /* ndim extents; those other than 0 multiply to 2^59 at most */
    int64_t *strides; /* in elements; not NULL if ndim > 0 */
    uint64_t byte_offset;
} catena_dl_tensor;

enum {
    CATENA_TENSOR_READONLY = 1u,  /* the callee must not write */
    CATENA_TENSOR_CONTIGUOUS = 2u /* dense, row-major */
};

/* A tensor lent for one call. Memory belongs to the host. Kernels get CONTIGUOUS tensors of the
 * call's device unless they declare CATENA_KERNEL_STRIDED. Different outputs never overlap; an
 * output does not overlap an input. */
typedef struct catena_tensor {
    uint32_t struct_size;
    uint32_t flags;      /* CATENA_TENSOR_* */
    catena_dl_tensor dl; /* the tensor as DLPack has it */
    uint64_t nbytes;     /* readable from data + byte_offset */
    uint32_t align_log2; /* alignment that the first element really has */
    uint32_t reserved;
    void *host_ref; /* the host's; opaque */
} catena_tensor;

/* Shape and type without data, for inference and plans. shape[0 .. ndim) is valid, the rest is
 * uninitialised. */
typedef struct catena_meta {
    uint32_t struct_size;
    int32_t ndim; /* 0 .. CATENA_MAX_NDIM */
    catena_dtype dtype;
    int32_t device_type; /* DLPack's DLDeviceType */
    int64_t shape[CATENA_MAX_NDIM];
} catena_meta;

#endif
