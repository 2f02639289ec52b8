// catena.blas/1 and catena.affine.draft/1 of CUDA: products by cuBLAS.
#pragma once

#include <cublas_v2.h>

#include "catena/abi/ext/blas.h"
#include "catena/abi/ext/draft/affine.h"

namespace catena_cuda {

extern const catena_blas blas_table;
extern const catena_affine affine_table;

// A dtype of products.
struct Type {
    uint8_t code;
    uint8_t bits;
    cudaDataType data;
    cublasComputeType_t compute;  // also of alpha and beta
};
const Type* type_of(catena_dtype dtype);  // NULL: of none

// [compute] Of a product: its numbers, with a text; the handle of its stream, and the device.
catena_status check(catena_ctx* ctx, const catena_gemm& gemm);
catena_status handle_for(catena_ctx* ctx, const catena_gemm& gemm, int* device, void** handle);
catena_status fail_product(catena_ctx* ctx, const char* call, int status, int device,
                           const catena_gemm& gemm);

}  // namespace catena_cuda
