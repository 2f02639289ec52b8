// The part of cuBLAS that catena uses, as plain loops.
#include <catena/plugin/half.hpp>
#pragma GCC visibility push(default)
#include <cublas_v2.h>  // last: it has a type `half`
#pragma GCC visibility pop

#include <algorithm>
#include <utility>

#include "emulator/work.hpp"

extern "C" {

// Owns some memory, as cuBLAS's handle does.
struct cublasContext {
    void* own = nullptr;
    cudaStream_t stream = nullptr;
    void* workspace = nullptr;
    int mode = 0;
    int pointers = 0;  // 1: alpha and beta are on the device
};

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
    auto* made = new cublasContext;
    if (cudaHostAlloc(&made->own, 64, 0) != cudaSuccess) {
        delete made;
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    *handle = made;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
    cudaFreeHost(handle->own);
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    handle->workspace = nullptr;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t* stream) {
    *stream = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* data, std::size_t) {
    handle->workspace = data;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
    handle->mode = mode;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode) {
    handle->pointers = mode;
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetProperty(libraryPropertyType property, int* value) {
    const int version[] = {13, 0, 0};
    *value = version[property];
    return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusName(cublasStatus_t status) {
    return status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS" : "CUBLAS_STATUS_OTHER";
}

}  // extern "C"

namespace {

using catena::plugin::BFloat16;
using catena::plugin::Float16;

inline float load(float x) { return x; }
inline double load(double x) { return x; }
inline float load(Float16 x) { return catena::plugin::to_float(x); }
inline float load(BFloat16 x) { return catena::plugin::to_float(x); }
inline void store(float* place, float x) { *place = x; }
inline void store(double* place, double x) { *place = x; }
inline void store(Float16* place, float x) { *place = catena::plugin::to_float16(x); }
inline void store(BFloat16* place, float x) { *place = catena::plugin::to_bfloat16(x); }

// Rounds a float32 operand as the tensor cores do for this compute type.
inline float rounded(float x, cublasComputeType_t compute) {
    if (compute == CUBLAS_COMPUTE_32F_FAST_16BF) return load(catena::plugin::to_bfloat16(x));
    if (compute == CUBLAS_COMPUTE_32F_FAST_16F) return load(catena::plugin::to_float16(x));
    return x;
}
inline double rounded(double x, cublasComputeType_t) { return x; }

template <class T>
struct Matrix {
    T* data;
    std::int64_t ld;
    bool transposed;
    T& operator()(std::int64_t row, std::int64_t column) const {
        return transposed ? data[row * ld + column] : data[column * ld + row];
    }
};

constexpr int rows = 16, columns = 8;  // of a tile, whose sums are registers

// c = alpha * a * b + beta * c; a is m by k, b is k by n.
template <class T, class Sum>
struct Product {
    Matrix<const T> a, b;
    Matrix<T> c;
    int m, n, k;
    Sum alpha, beta;
    cublasComputeType_t compute;

    void operator()() const {
        for (int column = 0; column < n; column += columns)
            for (int row = 0; row < m; row += rows) tile(row, column);
    }
    void tile(int row, int column) const {
        const int height = std::min(rows, m - row), width = std::min(columns, n - column);
        Sum sums[columns][rows] = {};
        for (int l = 0; l < k; ++l) {
            Sum x[rows] = {};
            for (int i = 0; i < height; ++i) x[i] = rounded(load(a(row + i, l)), compute);
            for (int j = 0; j < width; ++j) {
                const Sum y = rounded(load(b(l, column + j)), compute);
                for (int i = 0; i < rows; ++i) sums[j][i] += x[i] * y;
            }
        }
        for (int j = 0; j < width; ++j)
            for (int i = 0; i < height; ++i) {
                T* const place = &c(row + i, column + j);
                const Sum before = beta == 0 ? 0 : static_cast<Sum>(load(*place));
                store(place, beta == 0 ? alpha * sums[j][i] : alpha * sums[j][i] + beta * before);
            }
    }
};

// The memory of a matrix of this shape, before it is transposed.
template <class T>
catena_emulator::Range range(const Matrix<T>& x, int height, int width, bool is_written) {
    if (height == 0 || width == 0) return {x.data, 0, false};
    if (x.transposed) std::swap(height, width);
    return {x.data, static_cast<std::size_t>((width - 1) * x.ld + height) * sizeof(T), is_written};
}

template <class T, class Sum>
cublasStatus_t run(cublasHandle_t handle, cublasOperation_t trans_a, cublasOperation_t trans_b,
                   int m, int n, int k, const void* alpha, const void* a, int lda, const void* b,
                   int ldb, const void* beta, void* c, int ldc, cublasComputeType_t compute) {
    const Product<T, Sum> product = {{static_cast<const T*>(a), lda, trans_a == CUBLAS_OP_T},
                                     {static_cast<const T*>(b), ldb, trans_b == CUBLAS_OP_T},
                                     {static_cast<T*>(c), ldc, false},
                                     m,
                                     n,
                                     k,
                                     *static_cast<const Sum*>(alpha),
                                     *static_cast<const Sum*>(beta),
                                     compute};
    const cudaError_t error =
        catena_emulator::work(handle->stream,
                              {range(product.a, m, k, false), range(product.b, k, n, false),
                               range(product.c, m, n, true)},
                              product, "cublasGemmEx");
    return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace

extern "C" cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t trans_a,
                                       cublasOperation_t trans_b, int m, int n, int k,
                                       const void* alpha, const void* a, cudaDataType type_a,
                                       int lda, const void* b, cudaDataType type_b, int ldb,
                                       const void* beta, void* c, cudaDataType type_c, int ldc,
                                       cublasComputeType_t compute, cublasGemmAlgo_t) {
    if (handle->pointers != 0) return CUBLAS_STATUS_INVALID_VALUE;  // only host pointers work
    // The checks of cuBLAS. Without a workspace from the caller, cuBLAS would allocate one.
    if (m < 0 || n < 0 || k < 0 || lda < (trans_a == CUBLAS_OP_N ? m : k) ||
        ldb < (trans_b == CUBLAS_OP_N ? k : n) || ldc < m || lda < 1 || ldb < 1 || ldc < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (handle->workspace == nullptr || type_a != type_b || type_a != type_c ||
        (compute == CUBLAS_COMPUTE_64F) != (type_a == CUDA_R_64F))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
    const auto with = [&](auto* runner) {
        return runner(handle, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc,
                      compute);
    };
    switch (type_a) {
        case CUDA_R_32F: return with(&run<float, float>);
        case CUDA_R_64F: return with(&run<double, double>);
        case CUDA_R_16F: return with(&run<Float16, float>);
        case CUDA_R_16BF: return with(&run<BFloat16, float>);
        default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
}
