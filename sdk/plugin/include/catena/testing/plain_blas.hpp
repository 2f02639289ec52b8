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
    constexpr std::int64_t rows = 16, block = 64;
    for (std::int64_t i = 0; i < g.m; i += rows)
        for (std::int64_t j = 0; j < g.n; j += block) {
            const std::int64_t m = std::min(rows, g.m - i), n = std::min(block, g.n - j);
            double sums[rows][block] = {};
            for (std::int64_t k = 0; k < g.k; ++k) {
                double row[block];  // of B
                for (std::int64_t c = 0; c < n; ++c)
                    row[c] = static_cast<const T*>(
                        g.b)[g.transpose_b ? (j + c) * g.ldb + k : k * g.ldb + j + c];
                for (std::int64_t r = 0; r < m; ++r) {
                    const double x = static_cast<const T*>(
                        g.a)[g.transpose_a ? k * g.lda + i + r : (i + r) * g.lda + k];
                    for (std::int64_t c = 0; c < n; ++c) sums[r][c] += x * row[c];
                }
            }
            for (std::int64_t r = 0; r < m; ++r)
                for (std::int64_t c = 0; c < n; ++c) {
                    T& out = static_cast<T*>(g.c)[(i + r) * g.ldc + j + c];
                    out = static_cast<T>(g.alpha * sums[r][c] +
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
