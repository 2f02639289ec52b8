// OpenBLAS, loaded at run time: its kernels must be chosen before it is loaded.
#pragma once

#include <semaphore>

#include "cpu.hpp"

namespace catena_cpu {

// Constants of cblas.h, which is not included because it differs between builds of OpenBLAS.
enum { cblas_row_major = 101, cblas_no_trans = 111, cblas_trans = 112 };

template <class T>
using Gemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, T alpha, const T* a,
                      int lda, const T* b, int ldb, T beta, T* c, int ldc);

struct OpenBlas {
    Gemm<float> sgemm = nullptr;
    Gemm<double> dgemm = nullptr;
    int (*omp_get_max_threads)() = nullptr;  // NULL in builds without OpenMP
    void (*omp_set_num_threads)(int) = nullptr;
    std::string error;  // why sgemm and dgemm are NULL, or why few products run at a time
    catena_status status = CATENA_E_DEVICE;  // what a product returns if they are NULL
    int32_t buffers = 0;                     // products that may run at the same time
};

// The first call loads the library. It sets and unsets an environment variable, so no other thread may
// read the environment at that time. Later calls: [any].
const OpenBlas& openblas();

// [compute] A product holds a lease while it runs. OpenBLAS uses one buffer for each running product,
// and it tries forever to allocate another one if memory is short. So openblas() reserves the buffers,
// and a product waits while all of them are in use.
class BufferLease {
public:
    BufferLease() { unused().acquire(); }
    ~BufferLease() { unused().release(); }
    BufferLease(const BufferLease&) = delete;
    BufferLease& operator=(const BufferLease&) = delete;

private:
    static std::counting_semaphore<>& unused() {
        static std::counting_semaphore<> buffers(openblas().buffers);
        return buffers;
    }
};

// While it lives, OpenBLAS uses the calling thread alone. OpenMP keeps this setting for each thread,
// and the destructor restores it.
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
