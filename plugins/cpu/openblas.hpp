// OpenBLAS, loaded at run time: its kernels must be chosen before it is loaded.
#pragma once

#include <atomic>
#include <cstdint>

#include "catena/abi.h"

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
    char error[512] = {};  // why sgemm and dgemm are NULL, or why few products run at a time
    catena_status status = CATENA_E_DEVICE;  // of products, if they are NULL
    int32_t buffers = 0;                     // products that may run at the same time
};

// Loads the library on the first call, which sets and unsets an environment variable: make it where
// no other thread reads the environment. Afterwards [any].
const OpenBlas& openblas();

// [compute] A product needs one while it runs. OpenBLAS keeps a buffer for each running product, and
// where it gets no memory for another one, it tries again without end. So openblas() reserves the
// buffers, and a product that finds all of them in use waits for one.
class BufferLease {
public:
    BufferLease() {
        int32_t n = free_.load(std::memory_order_relaxed);
        do {
            while (n == 0) {
                free_.wait(0, std::memory_order_relaxed);
                n = free_.load(std::memory_order_relaxed);
            }
        } while (!free_.compare_exchange_weak(n, n - 1, std::memory_order_acquire,
                                              std::memory_order_relaxed));
    }

    // All who wait, because the next release finds 1 and tells nobody.
    ~BufferLease() {
        if (free_.fetch_add(1, std::memory_order_release) == 0) free_.notify_all();
    }

    BufferLease(const BufferLease&) = delete;
    BufferLease& operator=(const BufferLease&) = delete;

private:
    friend const OpenBlas& openblas();
    static constinit std::atomic<int32_t> free_;
};

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
