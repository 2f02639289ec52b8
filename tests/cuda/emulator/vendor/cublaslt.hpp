// What catena asks of cuBLASLt, which is behind cuBLAS: products with a bias. Included by cublas.cpp.
#pragma once

#include <cublasLt.h>

#include <atomic>
#include <cstring>

struct cublasLtProduct {
    cublasComputeType_t compute;
    cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    const void* bias = nullptr;
};
struct cublasLtLayout {
    cudaDataType type;
    std::int64_t rows, columns, ld;
};
struct cublasLtPreference {
    std::size_t workspace = 0;
    std::uint32_t reductions = 7;
    std::uint32_t alignment[4] = {256, 256, 256, 256};  // of A, B, C and D
};

namespace {

// What the algorithm was chosen for; another one is refused, as a wrong kernel would be.
struct Chosen {
    std::uint32_t alignment[4];
    std::int64_t m, n, k;
};
static_assert(sizeof(Chosen) <= sizeof(cublasLtMatmulAlgo_t));

bool set_value(void* to, std::size_t expected, const void* value, std::size_t bytes) {
    if (bytes != expected || value == nullptr) return false;
    std::memcpy(to, value, bytes);
    return true;
}
// m, n and k, or false if the layouts do not go together.
bool extents(const cublasLtProduct& p, const cublasLtLayout& a, const cublasLtLayout& b,
             const cublasLtLayout& c, std::int64_t (&mnk)[3]) {
    const auto rows = [](const cublasLtLayout& l, cublasOperation_t op) {
        return op == CUBLAS_OP_N ? l.rows : l.columns;
    };
    const auto columns = [](const cublasLtLayout& l, cublasOperation_t op) {
        return op == CUBLAS_OP_N ? l.columns : l.rows;
    };
    mnk[0] = c.rows;
    mnk[1] = c.columns;
    mnk[2] = columns(a, p.a);
    return rows(a, p.a) == c.rows && columns(b, p.b) == c.columns && rows(b, p.b) == mnk[2] &&
           a.type == b.type && a.type == c.type && a.ld >= a.rows && b.ld >= b.rows &&
           c.ld >= c.rows;
}

template <class T>
__global__ void affine_product(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, int m, int n,
                               int k, float alpha, float beta, const T* bias) {
    const int at = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (at >= m * n) return;
    float sum = 0;
    for (int l = 0; l < k; ++l) sum += load(a(at % m, l)) * load(b(l, at / m));
    T* const place = &c(at % m, at / m);
    const float before = beta == 0 ? 0 : beta * load(*place);
    store(place, alpha * sum + before + (bias == nullptr ? 0 : load(bias[at % m])));
}

}  // namespace

// How often the heuristic was asked, for tests: found by dlsym().
#pragma GCC visibility push(default)
extern "C" long catena_cublaslt_asked();
#pragma GCC visibility pop
namespace {
std::atomic<long> asked{0};
}

extern "C" {

long catena_cublaslt_asked() { return asked; }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                        cudaDataType scale) {
    if (scale != CUDA_R_32F || compute == CUBLAS_COMPUTE_64F) return CUBLAS_STATUS_NOT_SUPPORTED;
    *product = new cublasLtProduct{compute};
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product) {
    delete product;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t p,
                                              cublasLtMatmulDescAttributes_t name,
                                              const void* value, size_t bytes) {
    bool right = false;
    switch (name) {
        case CUBLASLT_MATMUL_DESC_TRANSA: right = set_value(&p->a, 4, value, bytes); break;
        case CUBLASLT_MATMUL_DESC_TRANSB: right = set_value(&p->b, 4, value, bytes); break;
        case CUBLASLT_MATMUL_DESC_EPILOGUE: right = set_value(&p->epilogue, 4, value, bytes); break;
        case CUBLASLT_MATMUL_DESC_BIAS_POINTER: right = set_value(&p->bias, 8, value, bytes); break;
    }
    return right ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld) {
    *layout = new cublasLtLayout{type, static_cast<std::int64_t>(rows),
                                 static_cast<std::int64_t>(columns), ld};
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
    *preference = new cublasLtPreference;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t name,
                                                    const void* value, size_t bytes) {
    bool right = false;
    if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        right = set_value(&p->workspace, 8, value, bytes);
    else if (name == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        right = set_value(&p->reductions, 4, value, bytes);
    else if (name >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)
        right = set_value(&p->alignment[name - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], 4,
                          value, bytes);
    return right ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* n) {
    *n = 0;
    ++asked;
    std::int64_t mnk[3];
    if (handle == nullptr || wanted < 1 || c->ld != d->ld || c->type != d->type ||
        !extents(*product, *a, *b, *c, mnk))
        return CUBLAS_STATUS_INVALID_VALUE;
    // As few as there may be: a product that nothing is known for.
    if (a->type == CUDA_R_64F || mnk[0] == 13) return CUBLAS_STATUS_NOT_SUPPORTED;
    Chosen chosen = {};
    std::memcpy(chosen.alignment, preference->alignment, sizeof chosen.alignment);
    chosen.m = mnk[0], chosen.n = mnk[1], chosen.k = mnk[2];
    std::memcpy(&results[0].algo, &chosen, sizeof chosen);
    results[0].workspaceSize = preference->workspace;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t p, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t la, const void* b,
                              cublasLtMatrixLayout_t lb, const void* beta, const void* c,
                              cublasLtMatrixLayout_t lc, void* d, cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t* algo, void* workspace, size_t bytes,
                              cudaStream_t stream) {
    std::int64_t mnk[3];
    if (!extents(*p, *la, *lb, *lc, mnk) || c != d || lc->ld != ld->ld || algo == nullptr ||
        (bytes > 0 && workspace == nullptr))
        return CUBLAS_STATUS_INVALID_VALUE;
    Chosen chosen;
    std::memcpy(&chosen, algo, sizeof chosen);
    const void* const data[] = {a, b, c, d};
    for (int i = 0; i < 4; ++i)
        if (reinterpret_cast<std::uintptr_t>(data[i]) % chosen.alignment[i] != 0)
            return CUBLAS_STATUS_INVALID_VALUE;
    if (chosen.m != mnk[0] || chosen.n != mnk[1] || chosen.k != mnk[2])
        return CUBLAS_STATUS_INVALID_VALUE;
    if (mnk[0] == 17) return CUBLAS_STATUS_NOT_SUPPORTED;  // one that is refused as late as this
    const auto launch = [&]<class T>(T) {
        const int m = static_cast<int>(mnk[0]);
        const int n = static_cast<int>(mnk[1]);
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(static_cast<unsigned>((m * n + 127) / 128));
        config.blockDim = dim3(128);
        config.stream = stream;
        return cudaLaunchKernelEx(
            &config, affine_product<T>,
            Matrix<const T>{static_cast<const T*>(a), la->ld, p->a == CUBLAS_OP_T},
            Matrix<const T>{static_cast<const T*>(b), lb->ld, p->b == CUBLAS_OP_T},
            Matrix<T>{static_cast<T*>(d), ld->ld, false}, m, n, static_cast<int>(mnk[2]),
            *static_cast<const float*>(alpha), *static_cast<const float*>(beta),
            p->epilogue == CUBLASLT_EPILOGUE_BIAS ? static_cast<const T*>(p->bias) : nullptr);
    };
    cudaError_t error = cudaErrorInvalidValue;
    if (la->type == CUDA_R_32F) error = launch(float());
    else if (la->type == CUDA_R_16F) error = launch(Float16());
    else if (la->type == CUDA_R_16BF) error = launch(BFloat16());
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
