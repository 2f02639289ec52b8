// catena.blas/1 with the tiles of AMX or with AVX512-BF16: products of float32 matrices whose call allows rounding
// to bfloat16. The operands are rounded while they are packed, and the sums are float32.
#if defined(__x86_64__)
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <catena/plugin/blas.hpp>
#include <catena/plugin/isa.hpp>

#include "cpu.hpp"

namespace catena_cpu {
namespace {

enum class Unit : uint8_t { none, avx512, amx };

// A tile register of AMX has 16 rows of 64 bytes. `side` lines (rows of A or columns of B) times `depth` numbers of
// each fill one, as 16 x 16 pairs of bfloat16: lines x pairs for A, and pairs x lines for B. AVX-512 reads the
// same layout.
constexpr int64_t side = 16;
constexpr int64_t depth = 32;
constexpr int64_t tile_bytes = 1024;
constexpr int64_t block = 2 * side;  // of C: 2 x 2 tiles
alignas(64) constexpr struct {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t bytes_of_a_row[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {side, side, side, side, side, side, side, side};
} eight_tiles;

// The packed parts of A and B fit into the second-level cache, and a block of A into the first-level cache. C
// is read and written once for every k_part numbers. These sizes are constants so that sums have the same
// order for any number of threads.
constexpr int64_t k_part = 512;
constexpr int64_t rows_part = 128;
constexpr int64_t columns_part = 512;
constexpr size_t a_bytes = rows_part * k_part * 2;
constexpr size_t b_bytes = columns_part * k_part * 2;

// Memory of one thread, allocated in its first product.
struct Buffers {
    Buffers() : memory(static_cast<char*>(std::aligned_alloc(64, a_bytes + b_bytes)), std::free) {}
    char* a() const { return memory.get(); }
    char* b() const { return memory.get() + a_bytes; }

    std::unique_ptr<char, decltype(&std::free)> memory;
};

struct Range {
    int64_t from;
    int64_t size;
};

#if defined(__x86_64__)
// GCC 12 warns of its own intrinsics, which start from undefined registers.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

// Only multiply_block() has instructions of AMX.
#define CATENA_AMX \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,amx-tile,amx-bf16")))

// One operand: `lines` of A or B, which are the rows of op(A) or the columns of op(B).
struct Operand {
    const float* data;
    int64_t ld;
    bool contiguous;  // the numbers of a line
    float scale;

    const float* at(int64_t line, int64_t k) const {
        return data + (contiguous ? line * ld + k : k * ld + line);
    }
};

CATENA_AMX inline __m512 load(const float* from, int64_t n, __m512 scale) {
    const auto mask = static_cast<__mmask16>(n >= side ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
    return _mm512_mul_ps(_mm512_maskz_loadu_ps(mask, from), scale);
}

CATENA_AMX inline __m512i round_both(__m512 low, __m512 high) {
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

// Transposes 16 x 16 pairs.
CATENA_AMX inline void transpose(__m512i (&x)[side]) {
    __m512i y[side];
    for (int i = 0; i < 16; i += 2) {
        y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; ++j) {
            x[i + 2 * j] = _mm512_unpacklo_epi64(y[i + j], y[i + j + 2]);
            x[i + 2 * j + 1] = _mm512_unpackhi_epi64(y[i + j], y[i + j + 2]);
        }
    for (int i = 0; i < 16; i += 8)
        for (int j = 0; j < 4; ++j) {
            y[i + j] = _mm512_shuffle_i32x4(x[i + j], x[i + j + 4], 0x88);
            y[i + j + 4] = _mm512_shuffle_i32x4(x[i + j], x[i + j + 4], 0xdd);
        }
    for (int i = 0; i < 8; ++i) {
        x[i] = _mm512_shuffle_i32x4(y[i], y[i + 8], 0x88);
        x[i + 8] = _mm512_shuffle_i32x4(y[i], y[i + 8], 0xdd);
    }
}

// Packs a tile of `lines` from a line on and `n` numbers of each from k on, padded with zeros.
CATENA_AMX void pack_tile(const Operand& x, int64_t line, int64_t lines, int64_t k, int64_t n,
                          bool lines_first, char* to) {
    const __m512 scale = _mm512_set1_ps(x.scale);
    __m512i pairs[side];
    if (x.contiguous) {
        for (int64_t i = 0; i < side; ++i) {
            const float* const from = x.at(line + (i < lines ? i : 0), k);
            const int64_t here = i < lines ? n : 0;
            pairs[i] = round_both(load(from, here, scale), load(from + side, here - side, scale));
        }
    } else {
        alignas(64) static constexpr short interleaved[depth] = {
            0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
            8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
        const __m512i order = _mm512_load_si512(interleaved);
        for (int64_t i = 0; i < side; ++i) {
            const float* const from = x.at(line, k + (2 * i < n ? 2 * i : 0));
            const float* const next = x.at(line, k + (2 * i + 1 < n ? 2 * i + 1 : 0));
            const __m512i both = round_both(load(from, 2 * i < n ? lines : 0, scale),
                                            load(next, 2 * i + 1 < n ? lines : 0, scale));
            pairs[i] = _mm512_permutexvar_epi16(order, both);
        }
    }
    if (x.contiguous != lines_first) transpose(pairs);
    for (int64_t i = 0; i < side; ++i)
        _mm512_store_si512(to + i * static_cast<int64_t>(sizeof(__m512i)), pairs[i]);
}

// Packs lines in blocks of two tiles' lines, block after block: for each `depth` numbers, the tile of the
// first and that of the last 16 lines. Reads in the order of memory.
CATENA_AMX void pack(const Operand& x, int64_t first, int64_t lines, int64_t k, int64_t n,
                     bool lines_first, char* to) {
    const int64_t tiles = (n + depth - 1) / depth * 2;  // of a block
    const auto pack_at = [&](int64_t line, int64_t i) {
        pack_tile(x, first + line, std::min(side, lines - line), k + i, std::min(depth, n - i),
                  lines_first,
                  to + (line / block * tiles + i / depth * 2 + line / side % 2) * tile_bytes);
    };
    if (x.contiguous)
        for (int64_t line = 0; line < lines; line += side)
            for (int64_t i = 0; i < n; i += depth) pack_at(line, i);
    else
        for (int64_t i = 0; i < n; i += depth)
            for (int64_t line = 0; line < lines; line += side) pack_at(line, i);
}

// C = A B, or C += A B, for one block, of which the tiles below or to the right may be missing.
CATENA_AMX void multiply_block(const char* a, const char* b, int64_t steps, float* c, int64_t ldc,
                               bool add, bool below, bool right) {
    const int64_t stride = ldc * static_cast<int64_t>(sizeof(float));
    float* const last = c + side * ldc;
    __asm__ volatile("" ::: "memory");  // GCC does not know that loads of tiles read memory
    if (add) {
        _tile_loadd(0, c, stride);
        if (right) _tile_loadd(1, c + side, stride);
        if (below) _tile_loadd(2, last, stride);
        if (below && right) _tile_loadd(3, last + side, stride);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t i = 0; i < steps; ++i, a += 2 * tile_bytes, b += 2 * tile_bytes) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b, 64);
        _tile_dpbf16ps(0, 4, 6);
        if (right) {
            _tile_loadd(7, b + tile_bytes, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (below) {
            _tile_loadd(5, a + tile_bytes, 64);
            _tile_dpbf16ps(2, 5, 6);
            if (right) _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, c, stride);
    if (right) _tile_stored(1, c + side, stride);
    if (below) _tile_stored(2, last, stride);
    if (below && right) _tile_stored(3, last + side, stride);
}

// The same with AVX-512. Computes rows rounded up to a multiple of 8.
template <int64_t vectors>
CATENA_AMX void multiply_block_by_vectors(const char* a, const char* b, int64_t steps, float* c,
                                          int64_t ldc, bool add, int64_t rows) {
    constexpr int64_t strip = 8, row_bytes = 64;
    for (int64_t i = 0; i < rows; i += strip, c += strip * ldc) {
        __m512 sum[strip][vectors];
        for (int64_t r = 0; r < strip; ++r)
            for (int64_t v = 0; v < vectors; ++v)
                sum[r][v] = add ? _mm512_loadu_ps(c + r * ldc + v * side) : _mm512_setzero_ps();
        const char* pair_of_a = a + i / side * tile_bytes + i % side * row_bytes;
        const char* pairs_of_b = b;
        for (int64_t step = 0; step < steps; ++step) {
            for (int64_t p = 0; p < side; ++p, pair_of_a += 4, pairs_of_b += row_bytes) {
                __m512bh y[vectors];
                for (int64_t v = 0; v < vectors; ++v)
                    y[v] =
                        reinterpret_cast<__m512bh>(_mm512_load_si512(pairs_of_b + v * tile_bytes));
#pragma GCC unroll 8
                for (int64_t r = 0; r < strip; ++r) {
                    int pair;
                    std::memcpy(&pair, pair_of_a + r * row_bytes, sizeof pair);
                    const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
                    for (int64_t v = 0; v < vectors; ++v)
                        sum[r][v] = _mm512_dpbf16_ps(sum[r][v], x, y[v]);
                }
            }
            pair_of_a += 2 * tile_bytes - row_bytes;
            pairs_of_b += tile_bytes;
        }
        for (int64_t r = 0; r < strip; ++r)
            for (int64_t v = 0; v < vectors; ++v)
                _mm512_storeu_ps(c + r * ldc + v * side, sum[r][v]);
    }
}

// Computes a block of C, in a copy if it is incomplete or its old values are scaled.
CATENA_AMX void update_block(Unit unit, const char* a, const char* b, int64_t steps, float* c,
                             int64_t ldc, int64_t rows, int64_t columns, float beta) {
    const bool add = beta != 0;
    if (rows == block && columns == block && (!add || beta == 1)) {
        if (unit == Unit::amx) multiply_block(a, b, steps, c, ldc, add, true, true);
        else multiply_block_by_vectors<2>(a, b, steps, c, ldc, add, rows);
        return;
    }
    alignas(64) float copy[block * block];
    for (int64_t i = 0; i < block && add; ++i)
        for (int64_t j = 0; j < block; ++j)
            copy[i * block + j] = i < rows && j < columns ? beta * c[i * ldc + j] : 0;
    if (unit == Unit::amx)
        multiply_block(a, b, steps, copy, block, add, rows > side, columns > side);
    else if (columns > side) multiply_block_by_vectors<2>(a, b, steps, copy, block, add, rows);
    else multiply_block_by_vectors<1>(a, b, steps, copy, block, add, rows);
    for (int64_t i = 0; i < rows; ++i) std::copy_n(copy + i * block, columns, c + i * ldc);
}

// Computes a part of C on one thread.
CATENA_AMX void multiply(Unit unit, const catena_gemm& g, const Range& rows, const Range& columns,
                         const Buffers& buffers) {
    const Operand a = {static_cast<const float*>(g.a), g.lda, g.transpose_a == 0,
                       static_cast<float>(g.alpha)};
    const Operand b = {static_cast<const float*>(g.b), g.ldb, g.transpose_b != 0, 1};
    if (unit == Unit::amx) _tile_loadconfig(&eight_tiles);
    for (int64_t j0 = 0; j0 < columns.size; j0 += columns_part) {
        const int64_t width = std::min(columns_part, columns.size - j0);
        for (int64_t k = 0; k == 0 || k < g.k; k += k_part) {
            const int64_t n = std::min(k_part, g.k - k);
            const int64_t steps = (n + depth - 1) / depth;
            const int64_t bytes = steps * 2 * tile_bytes;
            pack(b, columns.from + j0, width, k, n, false, buffers.b());
            for (int64_t i0 = 0; i0 < rows.size; i0 += rows_part) {
                const int64_t height = std::min(rows_part, rows.size - i0);
                pack(a, rows.from + i0, height, k, n, true, buffers.a());
                float* const c =
                    static_cast<float*>(g.c) + (rows.from + i0) * g.ldc + columns.from + j0;
                for (int64_t i = 0; i < height; i += block)
                    for (int64_t j = 0; j < width; j += block)
                        update_block(unit, buffers.a() + i / block * bytes,
                                     buffers.b() + j / block * bytes, steps, c + i * g.ldc + j,
                                     g.ldc, std::min(block, height - i), std::min(block, width - j),
                                     k == 0 ? static_cast<float>(g.beta) : 1);
            }
        }
    }
    if (unit == Unit::amx) _tile_release();
}

// Asks Linux to save the tiles on context switches and in signal frames.
bool enable_tiles() {
    constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return has_amx_bf16() && syscall(SYS_arch_prctl, request, tile_data) == 0;
}
// Returns the unit to use: that of the processor, unless CATENA_CPU_BFLOAT16 restricts it.
Unit detect() {
    if (catena::plugin::chosen_bfloat16().empty() && enable_tiles()) return Unit::amx;
    return catena::plugin::use_avx512_bf16() && isa_level() == 4 ? Unit::avx512 : Unit::none;
}
#else
void multiply(Unit, const catena_gemm&, const Range&, const Range&, const Buffers&) {}
Unit detect() { return Unit::none; }
#endif

Unit unit() {
    static const Unit found = detect();
    return found;
}

bool can(const catena_gemm& g) {
    return (g.flags & CATENA_CALL_BFLOAT16) != 0 && is_float(g.dtype, 32) && unit() != Unit::none;
}

// Tuned by measurement: README.md. Work is counted in multiply-adds, reuse in those per number of A, B and C.
constexpr double least_work = 400'000;
constexpr double least_reuse = 17;
constexpr double tile_least = 2'000'000;  // less work is not worth another thread
constexpr Cut cut = {block, block, 64, 64};

double work_of(const catena_gemm& g) {
    return static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
}
// Returns the numbers of A, B and C for each multiply-add.
double traffic(const catena_gemm& g) {
    return 1 / static_cast<double>(g.m) + 1 / static_cast<double>(g.n) +
           1 / static_cast<double>(g.k);
}

int32_t supports(const catena_gemm* g) {
    return std::min({g->m, g->n, g->k}) > 0 && work_of(*g) >= least_work &&
                   least_reuse * traffic(*g) <= 1 && can(*g)
               ? 1
               : 0;
}

struct Product {
    const catena_gemm& gemm;
    Grid grid;
    std::atomic<bool> out_of_memory = false;
};

catena_status run(catena_ctx* ctx, const catena_gemm* gemm) {
    const catena_status status = catena::plugin::check_gemm(
        ctx, *gemm, can(*gemm), "float32 as bfloat16, and AMX or fast AVX512-BF16");
    if (status != CATENA_OK || gemm->m == 0 || gemm->n == 0) return status;
    const double threads = pool.is_serial() ? 1 : pool.count();
    const auto parts = static_cast<int64_t>(std::clamp(work_of(*gemm) / tile_least, 1.0, threads));
    Product product = {*gemm, make_grid(gemm->m, gemm->n, parts, cut)};
    const auto run_tiles = [](void* user, int64_t begin, int64_t end, int32_t) {
        auto& [g, grid, out_of_memory] = *static_cast<Product*>(user);
        static thread_local const Buffers buffers;
        if (!buffers.memory) out_of_memory = true;
        else
            for (int64_t tile = begin; tile < end; ++tile) {
                const int64_t row = tile / grid.across * grid.rows;
                const int64_t column = tile % grid.across * grid.columns;
                multiply(unit(), g, {row, std::min(grid.rows, g.m - row)},
                         {column, std::min(grid.columns, g.n - column)}, buffers);
            }
    };
    pool.parallel_for(product.grid.tiles, 1, run_tiles, &product);
    return product.out_of_memory
               ? fail(ctx, CATENA_E_NOMEM, "[gemm] memory: expected some for buffers, got none")
               : CATENA_OK;
}

}  // namespace

const catena_blas bfloat16_table = catena::plugin::blas_of("bfloat16", supports, run);

}  // namespace catena_cpu
