// One product is cut into tiles of C, each one call of OpenBLAS on one thread. K is never cut.
#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdlib>

#include <catena/plugin/blas.hpp>

#include "cpu.hpp"

namespace catena_cpu {
namespace {

// Tuned by measurement: README.md says how. Work is counted in multiply-adds.
constexpr double plain_up_to = 64;      // a call of OpenBLAS costs more
constexpr double tile_least = 200'000;  // less is not worth another thread
// OpenBLAS has kernels for AVX-512 that multiply up to a million without packing first.
constexpr double unpacked_tile = 700'000;
constexpr double unpacked_below = 16e6;
constexpr int64_t unpacked_most = 1'000'000;  // so k is at most this
// Under DETERMINISTIC the number of tiles is the shape's own: up to 8, and more where they are large.
constexpr int64_t fixed_tiles = 8;
constexpr int64_t fixed_tiles_most = 16;
constexpr double fixed_tile_large = 8e6;

// Extents of tiles are multiples of the kernels' blocks. Besides its area, a tile costs the packing
// of its rows and columns.
constexpr int64_t row_unit = 4;
struct Cut {
    int64_t column_unit;
    int64_t row_cost;
    int64_t column_cost;
};
constexpr Cut usual_cut = {16, 16, 12};
// Of x W^T, the forward product of a layer, rather W is cut: a thread then finds the rows of W in
// its cache that it updated itself.
constexpr Cut weight_cut = {4, 16, 32};
constexpr int64_t weight_cut_from = 256;  // inputs

constexpr int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

struct Grid {
    int64_t rows;  // of a tile
    int64_t columns;
    int64_t across;  // tiles in a row of tiles
    int64_t tiles;
};

// The cheapest cut of an m x n matrix into at most parts tiles.
Grid make_grid(int64_t m, int64_t n, int64_t parts, const Cut& cut) {
    Grid best = {m, n, 1, 1};
    int64_t best_cost = INT64_MAX;
    for (int64_t down = 1; down <= parts; ++down) {
        const int64_t rows = std::min(m, round_up((m + down - 1) / down, row_unit));
        const int64_t across = parts / down;
        const int64_t columns = std::min(n, round_up((n + across - 1) / across, cut.column_unit));
        const int64_t cost = rows * columns + cut.row_cost * rows + cut.column_cost * columns;
        if (cost >= best_cost) continue;
        best_cost = cost;
        best = {rows, columns, (n + columns - 1) / columns, 0};
        best.tiles = best.across * ((m + rows - 1) / rows);
    }
    return best;
}

template <typename T>
struct Product {
    const catena_gemm& gemm;
    const OpenBlas& blas;
    Grid grid = {};
    mutable std::atomic<bool> out_of_memory = false;

    const T* a(int64_t row, int64_t k) const {
        return static_cast<const T*>(gemm.a) +
               (gemm.transpose_a != 0 ? k * gemm.lda + row : row * gemm.lda + k);
    }

    const T* b(int64_t k, int64_t column) const {
        return static_cast<const T*>(gemm.b) +
               (gemm.transpose_b != 0 ? column * gemm.ldb + k : k * gemm.ldb + column);
    }

    T* c(int64_t row, int64_t column) const {
        return static_cast<T*>(gemm.c) + row * gemm.ldc + column;
    }

    // Also for k == 0.
    void run_plain() const {
        const T alpha = static_cast<T>(gemm.alpha);
        const T beta = static_cast<T>(gemm.beta);
        for (int64_t i = 0; i < gemm.m; ++i)
            for (int64_t j = 0; j < gemm.n; ++j) {
                T sum = 0;
                for (int64_t l = 0; l < gemm.k; ++l) sum += *a(i, l) * *b(l, j);
                T& out = *c(i, j);
                out = beta == 0 ? alpha * sum : alpha * sum + beta * out;
            }
    }

    // OpenBLAS' kernels for AVX-512 that do not pack allocate up to 8 columns with malloc(), and crash if it
    // returns NULL. This allocates as much and frees it, which leaves it to OpenBLAS unless another thread
    // is faster.
    bool can_allocate() const {
        if (isa_level() < 4 || gemm.transpose_a != 0 || gemm.transpose_b != 0 ||
            gemm.k > unpacked_most)
            return true;
        // volatile: the compiler may otherwise remove both calls.
        void* volatile columns = std::malloc(8 * static_cast<size_t>(gemm.k) * sizeof(T));
        std::free(columns);
        return columns != nullptr;
    }

    static Gemm<T> gemm_of(const OpenBlas& blas) {
        if constexpr (std::is_same_v<T, float>) return blas.sgemm;
        else return blas.dgemm;
    }

    void run_tile(int64_t tile) const {
        const int64_t row = tile / grid.across * grid.rows;
        const int64_t column = tile % grid.across * grid.columns;
        const int64_t m = std::min(grid.rows, gemm.m - row);
        const int64_t n = std::min(grid.columns, gemm.n - column);
        gemm_of(blas)(cblas_row_major, gemm.transpose_a != 0 ? cblas_trans : cblas_no_trans,
                      gemm.transpose_b != 0 ? cblas_trans : cblas_no_trans, static_cast<int>(m),
                      static_cast<int>(n), static_cast<int>(gemm.k), static_cast<T>(gemm.alpha),
                      a(row, 0), static_cast<int>(gemm.lda), b(0, column),
                      static_cast<int>(gemm.ldb), static_cast<T>(gemm.beta), c(row, column),
                      static_cast<int>(gemm.ldc));
    }

    static void run_tiles(void* user, int64_t begin, int64_t end, int32_t) {
        const Product& self = *static_cast<const Product*>(user);
        const BufferLease buffer;
        const SingleThreaded guard(self.blas);
        if (!self.can_allocate()) {
            self.out_of_memory.store(true, std::memory_order_relaxed);
            return;
        }
        for (int64_t tile = begin; tile < end; ++tile) self.run_tile(tile);
    }

    int64_t count_tiles(double work) const {
        const auto up_to = [work](int64_t most, double least) {
            return static_cast<int64_t>(std::min(work / least, static_cast<double>(most)));
        };
        const bool fixed = (gemm.flags & CATENA_CALL_DETERMINISTIC) != 0;
        const int64_t threads = fixed || pool.is_serial() ? 1 : pool.count();
        int64_t tiles = fixed ? std::max(up_to(fixed_tiles, tile_least),
                                         up_to(fixed_tiles_most, fixed_tile_large))
                              : up_to(threads, tile_least);
        if (gemm.transpose_b == 0 && work > unpacked_tile && work < unpacked_below &&
            isa_level() == 4)
            tiles =
                std::max(tiles, round_up(static_cast<int64_t>(work / unpacked_tile) + 1, threads));
        return std::max<int64_t>(tiles, 1);
    }

    // Returns false if there was no memory.
    bool run() {
        const double work =
            static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
        if (work <= plain_up_to) {
            run_plain();
            return true;
        }
        const bool weights = gemm.transpose_b != 0 && gemm.k >= weight_cut_from;
        grid = make_grid(gemm.m, gemm.n, count_tiles(work), weights ? weight_cut : usual_cut);
        pool.parallel_for(grid.tiles, 1, run_tiles, this);
        return !out_of_memory.load(std::memory_order_relaxed);
    }
};

bool is_float(catena_dtype dtype, int bits) {
    return dtype.code == CATENA_CODE_FLOAT && dtype.bits == bits && dtype.lanes == 1;
}

int32_t supports(const catena_gemm* gemm) {
    const int64_t largest = std::max({gemm->m, gemm->n, gemm->k, gemm->lda, gemm->ldb, gemm->ldc});
    return (is_float(gemm->dtype, 32) || is_float(gemm->dtype, 64)) && largest <= INT_MAX ? 1 : 0;
}

catena_status run(catena_ctx* ctx, const catena_gemm* gemm) {
    const catena_status status =
        catena::plugin::check_gemm(ctx, *gemm, supports(gemm) != 0, "float32 or float64");
    if (status != CATENA_OK || gemm->m == 0 || gemm->n == 0) return status;
    const OpenBlas& blas = openblas();
    if (blas.sgemm == nullptr)
        return fail(ctx, blas.status, "[gemm] library: %s", blas.error.c_str());
    const bool done = is_float(gemm->dtype, 32) ? Product<float>{*gemm, blas}.run()
                                                : Product<double>{*gemm, blas}.run();
    if (done) return CATENA_OK;
    return fail(ctx, CATENA_E_NOMEM, "[gemm] memory: expected some for OpenBLAS, got none");
}

}  // namespace

const catena_blas blas_table = {
    .struct_size = sizeof(catena_blas),
    .reserved = 0,
    .name = "openblas",
    .supports = supports,
    .gemm = run,
};

}  // namespace catena_cpu
