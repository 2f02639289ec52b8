// catena.blas/1 by oneDNN: a product is cut along its longer side, each piece one call on one thread.
#include <algorithm>
#include <climits>

#include "catena/abi/ext/blas.h"
#include "kernels.hpp"

namespace catena_onednn {
namespace {

constexpr double least_work = 400'000;  // multiply-adds; below, OpenBLAS' small kernels are faster
constexpr std::int64_t fixed_pieces = 8;  // under DETERMINISTIC, of the shape's own

std::int32_t supports(const catena_gemm* g) {
    if (!same(g->dtype, dtype_of<float>())) return 0;
    const std::int64_t sizes[] = {g->m, g->n, g->k, g->lda, g->ldb, g->ldc};
    if (std::ranges::min(sizes) < 1 || std::ranges::max(sizes) > INT_MAX) return 0;
    if (g->lda < (g->transpose_a != 0 ? g->m : g->k) ||
        g->ldb < (g->transpose_b != 0 ? g->k : g->n) || g->ldc < g->n)
        return 0;
    const double work =
        static_cast<double>(g->m) * static_cast<double>(g->n) * static_cast<double>(g->k);
    return work >= least_work ? 1 : 0;
}

catena_status gemm(catena_ctx* ctx, const catena_gemm* g) {
    return guarded(ctx, "gemm", [&] {
        const bool by_rows = g->transpose_a != 0 && g->m >= g->n;
        const std::int64_t side = by_rows ? g->m : g->n;
        const std::int64_t pieces =
            (g->flags & CATENA_CALL_DETERMINISTIC) != 0 ? fixed_pieces : host().slots(ctx);
        const std::int64_t unit = 16;
        const std::int64_t width = (side + pieces * unit - 1) / (pieces * unit) * unit;
        parallel(ctx, (side + width - 1) / width,
                 [&](std::int64_t begin, std::int64_t end, std::int32_t) {
                     for (std::int64_t i = begin; i < end; ++i) {
                         const std::int64_t from = i * width;
                         const std::int64_t size = std::min(width, side - from);
                         const auto* a = static_cast<const float*>(g->a);
                         const auto* b = static_cast<const float*>(g->b);
                         auto* c = static_cast<float*>(g->c);
                         if (by_rows) {
                             a += g->transpose_a != 0 ? from : from * g->lda;
                             c += from * g->ldc;
                         } else {
                             b += g->transpose_b != 0 ? from * g->ldb : from;
                             c += from;
                         }
                         const auto status = dnnl::sgemm(
                             g->transpose_a != 0 ? 'T' : 'N', g->transpose_b != 0 ? 'T' : 'N',
                             by_rows ? size : g->m, by_rows ? g->n : size, g->k,
                             static_cast<float>(g->alpha), a, g->lda, b, g->ldb,
                             static_cast<float>(g->beta), c, g->ldc);
                         if (status != dnnl::status::success)
                             throw Error(CATENA_E_DEVICE, "[gemm] oneDNN failed");
                     }
                 });
    });
}

}  // namespace

const catena_blas blas_table = {
    .struct_size = sizeof(catena_blas),
    .reserved = 0,
    .name = "onednn",
    .supports = supports,
    .gemm = gemm,
};

}  // namespace catena_onednn
