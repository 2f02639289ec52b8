// catena.blas as plain loops: for kernels that ask the host for products, and as a reference for
// others.
#pragma once

#include <algorithm>
#include <cstdint>

#include "catena/abi/ext/blas.h"

namespace catena::testing {

// A plain triple loop, summed in double.
template <class T>
void plain_gemm(const catena_gemm& g) {
    const T* a = static_cast<const T*>(g.a);
    const T* b = static_cast<const T*>(g.b);
    T* c = static_cast<T*>(g.c);
    constexpr std::int64_t block = 64;
    for (std::int64_t i = 0; i < g.m; ++i)
        for (std::int64_t first = 0; first < g.n; first += block) {
            const std::int64_t n = std::min(block, g.n - first);
            double sums[block] = {};
            for (std::int64_t k = 0; k < g.k; ++k) {
                const double x =
                    static_cast<double>(g.transpose_a ? a[k * g.lda + i] : a[i * g.lda + k]);
                const T* row = b + (g.transpose_b ? first * g.ldb + k : k * g.ldb + first);
                const std::int64_t step = g.transpose_b ? g.ldb : 1;
                for (std::int64_t j = 0; j < n; ++j)
                    sums[j] += x * static_cast<double>(row[j * step]);
            }
            for (std::int64_t j = 0; j < n; ++j) {
                T& out = c[i * g.ldc + first + j];
                out = static_cast<T>(g.alpha * sums[j] +
                                     (g.beta == 0 ? 0 : g.beta * static_cast<double>(out)));
            }
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
