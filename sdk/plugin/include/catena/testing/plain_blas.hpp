// catena.blas as plain loops: for kernels that ask the host for products, and as a reference for
// others.
#pragma once

#include <algorithm>
#include <cstdint>

#include "catena/abi/ext/blas.h"

namespace catena::testing {

// Plain loops over blocks, summed in double in the order of k.
template <class T>
void plain_gemm(const catena_gemm& g) {
    const T* a = static_cast<const T*>(g.a);
    const T* b = static_cast<const T*>(g.b);
    T* c = static_cast<T*>(g.c);
    constexpr std::int64_t rows = 16, columns = 64;
    for (std::int64_t i0 = 0; i0 < g.m; i0 += rows)
        for (std::int64_t j0 = 0; j0 < g.n; j0 += columns) {
            const std::int64_t m = std::min(rows, g.m - i0), n = std::min(columns, g.n - j0);
            double sums[rows][columns] = {};
            for (std::int64_t k = 0; k < g.k; ++k) {
                double row[columns];  // of B
                for (std::int64_t j = 0; j < n; ++j)
                    row[j] = b[g.transpose_b ? (j0 + j) * g.ldb + k : k * g.ldb + j0 + j];
                for (std::int64_t i = 0; i < m; ++i) {
                    const double x = a[g.transpose_a ? k * g.lda + i0 + i : (i0 + i) * g.lda + k];
                    for (std::int64_t j = 0; j < n; ++j) sums[i][j] += x * row[j];
                }
            }
            for (std::int64_t i = 0; i < m; ++i)
                for (std::int64_t j = 0; j < n; ++j) {
                    T& out = c[(i0 + i) * g.ldc + j0 + j];
                    out = static_cast<T>(g.alpha * sums[i][j] +
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
