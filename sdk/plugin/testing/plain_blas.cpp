// Products of matrices as plain loops over blocks, for the instruction set of this machine.
#include "catena/testing/plain_blas.hpp"

#include <algorithm>
#include <cstdint>

#include "catena/plugin/isa.hpp"
#include "testing/state.hpp"

namespace catena::testing {
namespace {

template <class T>
struct PlainGemm {
    CATENA_KERNEL static void run(const catena_gemm* product) {
        const catena_gemm& g = *product;
        for (std::int64_t i = 0; i < g.m; i += rows)
            for (std::int64_t j = 0; j < g.n; j += columns) block(g, i, j);
    }

private:
    static constexpr std::int64_t rows = 16, columns = 64, lanes = 8;

    // Computes the block of C that begins at (i0, j0).
    CATENA_KERNEL static void block(const catena_gemm& g, std::int64_t i0, std::int64_t j0) {
        const T* a = static_cast<const T*>(g.a);
        const T* b = static_cast<const T*>(g.b);
        T* c = static_cast<T*>(g.c);
        const std::int64_t m = std::min(rows, g.m - i0), n = std::min(columns, g.n - j0);
        double sums[rows][columns];
        double row[columns] = {};  // of B
        for (std::int64_t i = 0; i < m; ++i)
            for (double& sum : sums[i]) sum = 0;
        for (std::int64_t k = 0; k < g.k; ++k) {
            for (std::int64_t j = 0; j < n; ++j)
                row[j] = b[g.transpose_b ? (j0 + j) * g.ldb + k : k * g.ldb + j0 + j];
            for (std::int64_t i = 0; i < m; ++i) {
                const double x = a[g.transpose_a ? k * g.lda + i0 + i : (i0 + i) * g.lda + k];
                for (std::int64_t j = 0; j < n; j += lanes)  // whole vectors
                    for (std::int64_t l = 0; l < lanes; ++l) sums[i][j + l] += x * row[j + l];
            }
        }
        for (std::int64_t i = 0; i < m; ++i) {
            T* out = c + (i0 + i) * g.ldc + j0;
            for (std::int64_t j = 0; j < n; ++j)
                out[j] = static_cast<T>(g.alpha * sums[i][j] +
                                        (g.beta == 0 ? 0 : g.beta * static_cast<double>(out[j])));
        }
    }
};

// Uses the last instruction set of the list that this machine has; it has those before it too.
template <class T, plugin::Isa... isa>
void multiply(const catena_gemm* g, plugin::IsaList<isa...>) {
    static constexpr void (*all[])(const catena_gemm*) = {
        &plugin::Target<isa>::template call<PlainGemm<T>, const catena_gemm*>...};
    static const int n = (detail::has_isa(plugin::isa_name(isa)) + ...);
    all[n - 1](g);
}

}  // namespace

const catena_blas plain_blas = {
    .struct_size = sizeof(catena_blas),
    .reserved = 0,
    .name = "plain",
    .supports = [](const catena_gemm*) -> std::int32_t { return 1; },
    .gemm = [](catena_ctx*, const catena_gemm* g) -> catena_status {
        g->dtype.bits == 32 ? multiply<float>(g, plugin::Isas())
                            : multiply<double>(g, plugin::Isas());
        return CATENA_OK;
    },
};

}  // namespace catena::testing
