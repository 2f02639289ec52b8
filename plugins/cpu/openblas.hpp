// OpenBLAS, loaded at run time: its kernels must be chosen before it is loaded.
#pragma once

#include <cstdint>

namespace catena_cpu {

// Of cblas.h, whose installed copy differs from one build of OpenBLAS to the next.
enum { cblas_row_major = 101, cblas_no_trans = 111, cblas_trans = 112 };

using SgemmFn = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                         const float* a, int lda, const float* b, int ldb, float beta, float* c,
                         int ldc);
using DgemmFn = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, double alpha,
                         const double* a, int lda, const double* b, int ldb, double beta, double* c,
                         int ldc);

struct OpenBlas {
    SgemmFn sgemm = nullptr;
    DgemmFn dgemm = nullptr;
    int (*omp_get_max_threads)() = nullptr;  // NULL in builds without OpenMP
    void (*omp_set_num_threads)(int) = nullptr;
    char error[512] = {};  // why sgemm and dgemm are NULL
};

// Loads the library on the first call, which sets and unsets an environment variable: make it where
// no other thread reads the environment. Afterwards [any].
const OpenBlas& openblas();

// While it lives, OpenBLAS uses the calling thread alone. The setting of OpenMP is the thread's
// own, and is given back.
class SingleThreaded {
public:
    explicit SingleThreaded(const OpenBlas& blas) : blas_(blas) {
        if (blas.omp_get_max_threads == nullptr) return;
        threads_ = blas.omp_get_max_threads();
        if (threads_ != 1) blas.omp_set_num_threads(1);
    }

    ~SingleThreaded() {
        if (threads_ != 1) blas_.omp_set_num_threads(threads_);
    }

    SingleThreaded(const SingleThreaded&) = delete;
    SingleThreaded& operator=(const SingleThreaded&) = delete;

private:
    const OpenBlas& blas_;
    int threads_ = 1;
};

}  // namespace catena_cpu
