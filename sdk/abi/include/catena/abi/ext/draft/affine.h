/* catena.affine.draft/1: an extension between plugins; a matrix product and a bias in one pass. */
#ifndef CATENA_ABI_EXT_DRAFT_AFFINE_H
#define CATENA_ABI_EXT_DRAFT_AFFINE_H

#include "catena/abi/ext/blas.h"

#define CATENA_AFFINE_DRAFT_1 "catena.affine.draft/1" /* its id */

/* The table of the extension. */
typedef struct catena_affine {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name; /* for tables and logs */
    /* [any] As of catena_blas. */
    int32_t(CATENA_CALL *supports)(const catena_gemm *gemm);
    /* [compute] As of catena_blas, with the n numbers of bias, of the product's dtype, added to
     * each row of C. CATENA_E_UNSUPPORTED, without text and with nothing done: not this one after
     * all. */
    catena_status(CATENA_CALL *gemm)(catena_ctx *ctx, const catena_gemm *gemm, const void *bias);
} catena_affine;

#endif
