// catena.blas/1 by oneDNN. A product is split along one side; each piece is a call on one thread.
#include <algorithm>
#include <climits>
#include <vector>

#include <catena/plugin/blas.hpp>

#include "engine.hpp"

namespace catena_onednn {
namespace {

// Minimum multiply-adds. Below it, the CPU backend's products are faster in measurements (README.md).
constexpr double least_work = 400'000;
constexpr double least_plain_work =
    3e6;  // for a B that is not transposed: OpenBLAS multiplies without packing
constexpr std::int64_t least_plain_b =
    16'384;  // elements of B, for products with more rows than columns
constexpr std::int64_t few_rows = 8;
constexpr std::int64_t least_dots = 128;       // k of products with few rows, if it is contiguous
constexpr std::int64_t least_few = 4'000'000;  // elements of the large operand, if it is not
constexpr std::int64_t fixed_pieces = 8;       // with DETERMINISTIC, for any number of threads
constexpr std::int64_t unit = 16;  // rows or columns that oneDNN's code processes at a time

bool can(const catena_gemm& g) {
    const std::int64_t sizes[] = {g.m, g.n, g.k, g.lda, g.ldb, g.ldc};
    return same(g.dtype, dtype_of<float>()) && std::ranges::min(sizes) >= 1 &&
           std::ranges::max(sizes) <= INT_MAX && g.lda >= (g.transpose_a != 0 ? g.m : g.k) &&
           g.ldb >= (g.transpose_b != 0 ? g.k : g.n) && g.ldc >= g.n;
}

// Whether one operand has so few rows that memory bounds the product; the CPU backend's is faster.
bool is_few_rows(const catena_gemm& g) {
    const std::int64_t rows = std::min(g.m, g.n);
    if (rows > few_rows) return false;
    const bool dots = g.m > g.n ? g.transpose_a == 0 : g.transpose_b != 0;
    return rows == 1 || (dots ? g.k >= least_dots : g.k * std::max(g.m, g.n) >= least_few);
}

std::int32_t supports(const catena_gemm* g) {
    if (!can(*g)) return 0;
    const double work =
        static_cast<double>(g->m) * static_cast<double>(g->n) * static_cast<double>(g->k);
    const bool plain = g->transpose_b == 0;
    if (plain && (g->m == 1 || work < least_plain_work)) return 0;
    if (plain && g->m > g->n && g->n * g->k < least_plain_b) return 0;
    if (is_few_rows(*g)) return 0;
    if (g->n <= unit && g->k > g->m && work < least_plain_work) return 0;
    return work >= least_work ? 1 : 0;
}

struct Pieces {
    bool rows;
    std::int64_t side;   // extent of the side that is split
    std::int64_t width;  // of a piece
    std::int64_t count() const { return (side + width - 1) / width; }
};

// Chooses the side to split. Each piece packs the other operand; a transposed A is contiguous across rows.
Pieces cut(const catena_gemm& g, std::int64_t most) {
    const bool rows = g.m > g.n && (g.transpose_a != 0 || g.n < 2 * unit * most);
    const std::int64_t side = rows ? g.m : g.n;
    return {rows, side, (side + most * unit - 1) / (most * unit) * unit};
}

void multiply(const catena_gemm& g, const Pieces& pieces, std::int64_t piece) {
    const std::int64_t from = piece * pieces.width;
    const std::int64_t size = std::min(pieces.width, pieces.side - from);
    const auto* a = static_cast<const float*>(g.a);
    const auto* b = static_cast<const float*>(g.b);
    auto* c = static_cast<float*>(g.c);
    if (pieces.rows) {
        a += g.transpose_a != 0 ? from : from * g.lda;
        c += from * g.ldc;
    } else {
        b += g.transpose_b != 0 ? from * g.ldb : from;
        c += from;
    }
    const dnnl::status status = dnnl::sgemm(
        g.transpose_a != 0 ? 'T' : 'N', g.transpose_b != 0 ? 'T' : 'N', pieces.rows ? size : g.m,
        pieces.rows ? g.n : size, g.k, static_cast<float>(g.alpha), a, g.lda, b, g.ldb,
        static_cast<float>(g.beta), c, g.ldc);
    if (status != dnnl::status::success)
        throw Error(status == dnnl::status::out_of_memory ? CATENA_E_NOMEM : CATENA_E_DEVICE,
                    "[gemm] oneDNN: expected success, got status " +
                        std::to_string(static_cast<int>(status)));
}

bool generate_code() {
    require_memory();
    const Undisturbed guard;
    constexpr std::int64_t n = 64, few = 4;
    const std::vector<float> a(n * n), b(n * n);
    std::vector<float> c(n * n);
    catena_gemm g = {};
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = n;
    g.alpha = 1;
    g.a = a.data();
    g.b = b.data();
    g.c = c.data();
    multiply(g, {false, n, n}, 0);
    g.m = few;
    g.transpose_b = 1;
    multiply(g, {false, n, n}, 0);
    return true;
}

catena_status gemm(catena_ctx* ctx, const catena_gemm* g) {
    return guarded(ctx, [&] {
        if (!can(*g))
            throw Error(CATENA_E_UNSUPPORTED,
                        "[gemm] product: expected float32, extents from 1 on and leading "
                        "dimensions that hold them, got another");
        generate_products();
        const bool fixed = (g->flags & CATENA_CALL_DETERMINISTIC) != 0;
        const Pieces pieces = cut(*g, fixed ? fixed_pieces : host().slots(ctx));
        parallel(ctx, pieces.count(),
                 [&](std::int64_t i, std::int32_t) { multiply(*g, pieces, i); });
    });
}

}  // namespace

// oneDNN has two sets of code for products; one of them is for few rows of A with B transposed. It generates
// each set when a product first needs it. This function generates both at once, before any piece runs: during
// a product, other threads could use up the memory that require_memory() has found.
void generate_products() { [[maybe_unused]] static const bool ready = generate_code(); }

const catena_blas blas_table = blas_of("onednn", supports, gemm);

}  // namespace catena_onednn
