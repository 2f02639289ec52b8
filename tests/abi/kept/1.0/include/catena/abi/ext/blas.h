/* catena.blas/1: an extension between plugins for matrix products on a device. */
#ifndef CATENA_ABI_EXT_BLAS_H
#define CATENA_ABI_EXT_BLAS_H

#include "catena/abi/host.h"

#define CATENA_BLAS_1 "catena.blas/1" /* its id */

/* C (m x n) = alpha * op(A) (m x k) * op(B) (k x n) + beta * C; row-major, leading dimensions in
 * elements. beta == 0 overwrites C without reading it. */
typedef struct catena_gemm {
    uint32_t struct_size;
    uint32_t flags;      /* CATENA_CALL_DETERMINISTIC, _BFLOAT16 or _FLOAT16 */
    catena_dtype dtype;  /* of A, B and C */
    uint8_t transpose_a; /* 1: op(A) is A transposed */
    uint8_t transpose_b; /* 1: op(B) is B transposed */
    uint16_t reserved;
    int64_t m;
    int64_t n;
    int64_t k;
    double alpha;
    double beta;
    const void *a;
    const void *b;
    void *c;
    /* Leading dimensions. */
    int64_t lda;
    int64_t ldb;
    int64_t ldc;
    catena_stream *stream; /* as in catena_call */
} catena_gemm;

/* The table of the extension. */
typedef struct catena_blas {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name; /* for tables and logs: "openblas" */
    /* [any] 1 if gemm() can and should compute this product; data pointers may be NULL. */
    int32_t(CATENA_CALL *supports)(const catena_gemm *gemm);
    /* [compute] ctx is the caller's. */
    catena_status(CATENA_CALL *gemm)(catena_ctx *ctx, const catena_gemm *gemm);
} catena_blas;

#endif
