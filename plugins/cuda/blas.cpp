// Matrix products with cuBLAS, which is column-major: the row-major product C = A B is the
// column-major product C^T = B^T A^T on the same bytes. Results are bit-identical in every run,
// because each stream has its own handle and workspace, and atomics are off.
#include "backend.hpp"

#include <cublas_v2.h>
#include <dlfcn.h>

#include <algorithm>
#include <cinttypes>
#include <climits>

#include <catena/plugin/blas.hpp>

namespace catena_cuda {
namespace {

using GemmEx = cublasStatus_t (*)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int,
                                  int, const void*, const void*, cudaDataType, int, const void*,
                                  cudaDataType, int, const void*, void*, cudaDataType, int,
                                  cublasComputeType_t, cublasGemmAlgo_t);

struct Type {
    uint8_t code;
    uint8_t bits;
    cudaDataType data;
    cublasComputeType_t compute;  // also the type of alpha and beta
};
constexpr Type types[] = {
    {CATENA_CODE_FLOAT, 32, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {CATENA_CODE_FLOAT, 64, CUDA_R_64F, CUBLAS_COMPUTE_64F},
    {CATENA_CODE_FLOAT, 16, CUDA_R_16F, CUBLAS_COMPUTE_32F},
    {CATENA_CODE_BFLOAT, 16, CUDA_R_16BF, CUBLAS_COMPUTE_32F},
};

const Type* type_of(catena_dtype dtype) {
    for (const Type& t : types)
        if (t.code == dtype.code && t.bits == dtype.bits && dtype.lanes == 1) return &t;
    return nullptr;
}

// Returns the compute type: float32 matrices may be rounded if the call or the user allows it.
cublasComputeType_t compute_type(const Type& type, uint32_t flags) {
    if (type.data != CUDA_R_32F) return type.compute;
    if ((flags & CATENA_CALL_BFLOAT16) != 0) return CUBLAS_COMPUTE_32F_FAST_16BF;
    if ((flags & CATENA_CALL_FLOAT16) != 0) return CUBLAS_COMPUTE_32F_FAST_16F;
    return settings().tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : type.compute;
}

int32_t supports(const catena_gemm* gemm) {
    const int64_t largest = std::max({gemm->m, gemm->n, gemm->k, gemm->lda, gemm->ldb, gemm->ldc});
    return type_of(gemm->dtype) != nullptr && largest <= INT_MAX ? 1 : 0;
}

cublasOperation_t operation(uint8_t transpose) {
    return transpose != 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
}

void multiply(catena_ctx* ctx, const catena_gemm* gemm) {
    check_status(catena::plugin::check_gemm(ctx, *gemm, supports(gemm) != 0,
                                            "float32, float64, float16 or bfloat16"));
    if (gemm->m == 0 || gemm->n == 0) return;
    const cudaStream_t stream = cuda(gemm->stream);
    int device = 0;
    if (const cudaError_t error = owner_of(stream, &device); error != cudaSuccess)
        check_status(fail(ctx, CATENA_E_DEVICE, "[gemm] cudaStreamGetDevice: %s (%s)",
                          cudaGetErrorName(error), cudaGetErrorString(error)));
    void* const handle = handle_of(ctx, device, stream, "cublas", User::backend);
    static const auto gemm_ex =
        reinterpret_cast<GemmEx>(dlsym(library("cublas")->dl, "cublasGemmEx"));
    if (gemm_ex == nullptr)
        check_status(fail(ctx, CATENA_E_UNSUPPORTED,
                          "[gemm] cublas: expected cublasGemmEx, got a library without"));
    Scope scope(ctx, "gemm", device);
    const Type& type = *type_of(gemm->dtype);
    const float alpha = static_cast<float>(gemm->alpha);
    const float beta = static_cast<float>(gemm->beta);
    const bool wide = type.compute == CUBLAS_COMPUTE_64F;
    const cublasStatus_t result = gemm_ex(
        static_cast<cublasHandle_t>(handle), operation(gemm->transpose_b),
        operation(gemm->transpose_a), static_cast<int>(gemm->n), static_cast<int>(gemm->m),
        static_cast<int>(gemm->k), wide ? static_cast<const void*>(&gemm->alpha) : &alpha, gemm->b,
        type.data, static_cast<int>(gemm->ldb), gemm->a, type.data, static_cast<int>(gemm->lda),
        wide ? static_cast<const void*>(&gemm->beta) : &beta, gemm->c, type.data,
        static_cast<int>(gemm->ldc), compute_type(type, gemm->flags), CUBLAS_GEMM_DEFAULT);
    if (result != CUBLAS_STATUS_SUCCESS)
        check_status(fail(
            ctx, result == CUBLAS_STATUS_ALLOC_FAILED ? CATENA_E_NOMEM : CATENA_E_DEVICE,
            "[gemm] cublasGemmEx on device %d: status %d, of %" PRId64 " x %" PRId64 " x %" PRId64,
            device, static_cast<int>(result), gemm->m, gemm->n, gemm->k));
    check_status(scope.status());
}

catena_status run(catena_ctx* ctx, const catena_gemm* gemm) {
    return guarded(ctx, "gemm", [&] { return multiply(ctx, gemm); });
}

}  // namespace

const catena_blas blas_table = catena::plugin::blas_of("cublas", supports, run);

}  // namespace catena_cuda
