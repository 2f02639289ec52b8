/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_EXT_BLAS_H
#define CATENA_ABI_EXT_BLAS_H
#include "catena/abi/host.h"
#define CATENA_BLAS_1 "catena.blas/1"
typedef struct catena_gemm {
    uint32_t struct_size;
    uint32_t flags;
    catena_dtype dtype;
    uint8_t transpose_a;
    uint8_t transpose_b;
    uint16_t reserved;
    int64_t m;
    int64_t n;
    int64_t k;
    double alpha;
    double beta;
    const void *a;
    const void *b;
    void *c;
    int64_t lda;
    int64_t ldb;
    int64_t ldc;
    catena_stream *stream;
} catena_gemm;
typedef struct catena_blas {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name;
    int32_t(CATENA_CALL *supports)(const catena_gemm *gemm);
    catena_status(CATENA_CALL *gemm)(catena_ctx *ctx, const catena_gemm *gemm);
} catena_blas;
#endif
