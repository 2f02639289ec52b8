// catena.blas as plain loops: for kernels that ask the host for products, and to measure others by.
#pragma once

#include <cstdint>

#include "catena/abi/ext/blas.h"

namespace catena::testing {

// A plain triple loop, summed in double.
template <class T>
void plain_gemm(const catena_gemm& g) {
    const T* a = static_cast<const T*>(g.a);
    const T* b = static_cast<const T*>(g.b);
    T* c = static_cast<T*>(g.c);
    const std::int64_t step_a = g.transpose_a != 0 ? g.lda : 1;
    const std::int64_t step_b = g.transpose_b != 0 ? 1 : g.ldb;
    for (std::int64_t i = 0; i < g.m; ++i)
        for (std::int64_t j = 0; j < g.n; ++j) {
            const T* from_a = a + i * (g.transpose_a != 0 ? 1 : g.lda);
            const T* from_b = b + j * (g.transpose_b != 0 ? g.ldb : 1);
            double sum = 0;
            for (std::int64_t k = 0; k < g.k; ++k)
                sum += static_cast<double>(from_a[k * step_a]) *
                       static_cast<double>(from_b[k * step_b]);
            T& out = c[i * g.ldc + j];
            out = static_cast<T>(g.alpha * sum +
                                 (g.beta == 0 ? 0 : g.beta * static_cast<double>(out)));
        }
}

inline constexpr catena_blas plain_blas = {
    .struct_size = sizeof(catena_blas),
    .reserved = 0,
    .name = "plain",
    .supports = [](const catena_gemm*) -> std::int32_t { return 1; },
    .gemm = [](catena_ctx*, const catena_gemm* g) -> catena_status {
        g->dtype.bits == 32 ? plain_gemm<float>(*g) : plain_gemm<double>(*g);
        return CATENA_OK;
    },
};

}  // namespace catena::testing
