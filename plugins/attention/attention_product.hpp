// Small matrix products in registers, for tiles of attention.
#pragma once

#include <catena/plugin.hpp>
#if defined(CATENA_X86)
#include <immintrin.h>
#endif

namespace catena::plugins {

using namespace catena::plugin;

// C (m x n) = A (m x k) B (k x n), or c = factor c + A B with a factor for each column. Element
// (i, p) of A is a[i * rows + p * columns]; rows of B and C are contiguous. n is a multiple of 16.
template <class T>
struct TileProduct {
    std::int64_t m, n, k;
    const T* a;
    std::int64_t rows, columns;
    const T* b;
    std::int64_t ldb;
    T* c;
    std::int64_t ldc;
    const T* factors;  // null: overwrite C
};

// Computes a TileProduct. Each element is a sum in the order of k, for any shape.
template <class T, Isa isa>
struct MultiplyTile {
    static constexpr int bytes = isa == Isa::x86_64_v4 ? 64 : isa == Isa::x86_64_v3 ? 32 : 16;
    static constexpr int width = bytes / static_cast<int>(sizeof(T));
    // Rows of C that are computed together: with two vectors each, as many as registers allow.
    static constexpr int height = isa == Isa::x86_64_v4 ? 8 : isa == Isa::x86_64_v3 ? 6 : 4;
    typedef T Vector __attribute__((vector_size(bytes)));
    typedef T Unaligned __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias));

    CATENA_KERNEL static void run(const TileProduct<T>* product) {
        const TileProduct<T> p = *product;
        std::int64_t j = 0;
        for (; j + 2 * width <= p.n; j += 2 * width)
            for (std::int64_t i = 0; i < p.m; i += height) strip<2>(p, i, j);
        for (; j < p.n; j += width)
            for (std::int64_t i = 0; i < p.m; i += height) strip<1>(p, i, j);
    }

private:
    template <int vectors>
    CATENA_KERNEL static void strip(const TileProduct<T>& p, std::int64_t i, std::int64_t j) {
        Vector sum[height][vectors];
        std::int64_t at[height];  // rows past the last one repeat it
        CATENA_UNROLL
        for (int r = 0; r < height; ++r) {
            at[r] = std::min(i + r, p.m - 1) * p.rows;
            CATENA_UNROLL
            for (int v = 0; v < vectors; ++v) sum[r][v] = Vector{};
        }
        const T* a = p.a;
        const T* b = p.b + j;
        for (std::int64_t left = p.k; left > 0; --left, a += p.columns, b += p.ldb) {
            Vector row[vectors];
            CATENA_UNROLL
            for (int v = 0; v < vectors; ++v) row[v] = reinterpret_cast<const Unaligned*>(b)[v];
            CATENA_UNROLL
            for (int r = 0; r < height; ++r) {
                const T factor = a[at[r]];
                CATENA_UNROLL
                for (int v = 0; v < vectors; ++v) sum[r][v] += factor * row[v];
            }
        }
        CATENA_UNROLL
        for (int r = 0; r < height; ++r) {
            if (i + r >= p.m) break;
            CATENA_UNROLL
            for (int v = 0; v < vectors; ++v) {
                auto& c = reinterpret_cast<Unaligned*>(p.c + (i + r) * p.ldc + j)[v];
                if (p.factors == nullptr) c = sum[r][v];
                else c = c * reinterpret_cast<const Unaligned*>(p.factors + j)[v] + sum[r][v];
            }
        }
    }
};

#if defined(CATENA_X86)
// Computes a TileProduct whose operands may be rounded to bfloat16: pairs of numbers are packed, and
// `vdpbf16ps` adds their products in float32.
struct MultiplyRoundedTile {
// GCC 12 warns of its own intrinsics, which start from undefined registers.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#define CATENA_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
    static constexpr std::int64_t most = 128 * 64 / 2;  // pairs of A, or of B

    static bool supports(const TileProduct<float>& p) {
        const std::int64_t pairs = (p.k + 1) / 2;
        return p.m * pairs <= most && p.n * pairs <= most;
    }
    CATENA_BF16 static void run(const TileProduct<float>& p) {
        alignas(64) std::uint32_t a[most], b[most];
        const std::int64_t pairs = (p.k + 1) / 2;
        const bool by_rows = p.columns == 1;
        if (by_rows)
            for (std::int64_t i = 0; i < p.m; ++i) round_row(p.a + i * p.rows, p.k, a + i * pairs);
        else interleave(p.a, p.columns, p.k, p.m, a);
        interleave(p.b, p.ldb, p.k, p.n, b);
        const std::int64_t rows = by_rows ? pairs : 1, step = by_rows ? 1 : p.m;
        std::int64_t j = 0;
        for (; j + 32 <= p.n; j += 32) strips<2>(p, a, rows, step, b, j);
        for (; j < p.n; j += 16) strips<1>(p, a, rows, step, b, j);
    }

private:
    CATENA_BF16 static __mmask16 first(std::int64_t n) {
        return static_cast<__mmask16>(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
    }
    // Rounds n numbers, and a zero if n is odd.
    CATENA_BF16 static void round_row(const float* from, std::int64_t n, std::uint32_t* to) {
        for (std::int64_t i = 0; i < n; i += 16) {
            const __m512 x = _mm512_maskz_loadu_ps(first(n - i), from + i);
            const auto y = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x));
            const auto used = static_cast<__mmask8>(first((n - i + 1) / 2));
            _mm256_mask_storeu_epi32(to + i / 2, used, y);
        }
    }
    // to[p * n + i]: the pair of elements i of the rows 2p and 2p + 1
    CATENA_BF16 static void interleave(const float* from, std::int64_t step, std::int64_t rows,
                                       std::int64_t n, std::uint32_t* to) {
        for (std::int64_t p = 0; p < rows; p += 2, from += 2 * step, to += n)
            for (std::int64_t i = 0; i < n; i += 16) {
                const __mmask16 used = first(n - i);
                const __m512 x = _mm512_maskz_loadu_ps(used, from + i);
                const __m512 y = p + 1 < rows ? _mm512_maskz_loadu_ps(used, from + step + i)
                                              : _mm512_setzero_ps();
                const auto low = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x));
                const auto high = reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(y));
                const __m512i pairs = _mm512_or_si512(
                    _mm512_cvtepu16_epi32(low), _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
                _mm512_mask_storeu_epi32(to + i, used, pairs);
            }
    }
    template <int vectors>
    CATENA_BF16 static void strips(const TileProduct<float>& p, const std::uint32_t* a,
                                   std::int64_t rows, std::int64_t step, const std::uint32_t* b,
                                   std::int64_t j) {
        constexpr int height = 8;
        for (std::int64_t i = 0; i < p.m; i += height) {
            __m512 sum[height][vectors];
            const std::uint32_t* at[height];  // rows past the last one repeat it
            CATENA_UNROLL
            for (int r = 0; r < height; ++r) {
                at[r] = a + std::min(i + r, p.m - 1) * rows;
                CATENA_UNROLL
                for (int v = 0; v < vectors; ++v) sum[r][v] = _mm512_setzero_ps();
            }
            for (std::int64_t k = 0; k < (p.k + 1) / 2; ++k) {
                __m512i row[vectors];
                CATENA_UNROLL
                for (int v = 0; v < vectors; ++v)
                    row[v] = _mm512_loadu_si512(b + k * p.n + j + 16 * v);
                CATENA_UNROLL
                for (int r = 0; r < height; ++r) {
                    const __m512i pair = _mm512_set1_epi32(static_cast<int>(at[r][k * step]));
                    CATENA_UNROLL
                    for (int v = 0; v < vectors; ++v)
                        sum[r][v] = _mm512_dpbf16_ps(sum[r][v], reinterpret_cast<__m512bh>(pair),
                                                     reinterpret_cast<__m512bh>(row[v]));
                }
            }
            CATENA_UNROLL
            for (int r = 0; r < height; ++r) {
                if (i + r >= p.m) break;
                CATENA_UNROLL
                for (int v = 0; v < vectors; ++v) {
                    float* const c = p.c + (i + r) * p.ldc + j + 16 * v;
                    if (p.factors != nullptr)
                        sum[r][v] = _mm512_fmadd_ps(
                            _mm512_loadu_ps(c), _mm512_loadu_ps(p.factors + j + 16 * v), sum[r][v]);
                    _mm512_storeu_ps(c, sum[r][v]);
                }
            }
        }
    }
#undef CATENA_BF16
#pragma GCC diagnostic pop
};
#endif

// Products of one row with a matrix A (m x n) whose rows are contiguous, `step` elements apart:
// y = A x, or y = factor y + x A.
template <class T>
struct RowProduct {
    std::int64_t m, n;
    const T* x;
    const T* a;
    std::int64_t step;
    T factor;
    T* y;

    template <int n>
    struct Vector {
        typedef T Type __attribute__((vector_size(n * sizeof(T)), aligned(sizeof(T)), may_alias));
    };
    using Four = typename Vector<4>::Type;
    using Sixteen = typename Vector<16>::Type;
    CATENA_KERNEL static const Sixteen& sixteen(const T* p) {
        return *reinterpret_cast<const Sixteen*>(p);
    }

    struct Dots {
        CATENA_KERNEL static void run(const RowProduct* product) {
            const RowProduct p = *product;
            const std::int64_t whole = p.n / 16 * 16;
            for (std::int64_t i = 0; i < p.m; i += 4) {
                const T* row[4];
                Sixteen sum[4];
                CATENA_UNROLL
                for (int r = 0; r < 4; ++r) {
                    row[r] = p.a + std::min(i + r, p.m - 1) * p.step;
                    sum[r] = Sixteen{};
                }
                for (std::int64_t j = 0; j < whole; j += 16) {
                    const Sixteen x = sixteen(p.x + j);
                    CATENA_UNROLL
                    for (int r = 0; r < 4; ++r) sum[r] += x * sixteen(row[r] + j);
                }
                T total[4];
                CATENA_UNROLL
                for (int r = 0; r < 4; ++r) {
                    const auto eight =
                        __builtin_shufflevector(sum[r], sum[r], 0, 1, 2, 3, 4, 5, 6, 7) +
                        __builtin_shufflevector(sum[r], sum[r], 8, 9, 10, 11, 12, 13, 14, 15);
                    const Four four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                                      __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
                    total[r] = (four[0] + four[2]) + (four[1] + four[3]);
                    for (std::int64_t j = whole; j < p.n; ++j) total[r] += p.x[j] * row[r][j];
                    if (i + r < p.m) p.y[i + r] = total[r];
                }
            }
        }
    };
    struct Sums {
        CATENA_KERNEL static void run(const RowProduct* product) {
            const RowProduct p = *product;
            std::int64_t j = 0;
            for (; j + 64 <= p.n; j += 64) strip<4>(p, j);
            for (; j + 16 <= p.n; j += 16) strip<1>(p, j);
            for (; j < p.n; ++j) {
                T sum = p.factor * p.y[j];
                for (std::int64_t i = 0; i < p.m; ++i) sum += p.x[i] * p.a[i * p.step + j];
                p.y[j] = sum;
            }
        }
        template <int vectors>
        CATENA_KERNEL static void strip(const RowProduct& p, std::int64_t j) {
            Sixteen sum[vectors];
            CATENA_UNROLL
            for (int v = 0; v < vectors; ++v) sum[v] = p.factor * sixteen(p.y + j + 16 * v);
            const T* a = p.a + j;
            for (std::int64_t i = 0; i < p.m; ++i, a += p.step) {
                CATENA_UNROLL
                for (int v = 0; v < vectors; ++v) sum[v] += p.x[i] * sixteen(a + 16 * v);
            }
            CATENA_UNROLL
            for (int v = 0; v < vectors; ++v)
                *reinterpret_cast<Sixteen*>(p.y + j + 16 * v) = sum[v];
        }
    };
};

// to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns, multiples of 4.
template <class T>
struct TileTranspose {
    std::int64_t rows, columns;
    const T* from;
    std::int64_t from_step;
    T* to;
    std::int64_t to_step;

    typedef T Vector __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));

    CATENA_KERNEL static void run(const TileTranspose* transpose) {
        const TileTranspose p = *transpose;
        for (std::int64_t i = 0; i < p.rows; i += 4) {
            const T* from = p.from + i * p.from_step;
            T* to = p.to + i;
            for (std::int64_t j = 0; j < p.columns; j += 4, from += 4, to += 4 * p.to_step) {
                const auto row = [&](int k) CATENA_LAMBDA -> const Vector& {
                    return *reinterpret_cast<const Vector*>(from + k * p.from_step);
                };
                const Vector a = row(0), b = row(1), c = row(2), d = row(3);
                const Vector ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
                const Vector cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
                const Vector after_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
                const Vector after_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
                const auto put = [&](int k) CATENA_LAMBDA -> Vector& {
                    return *reinterpret_cast<Vector*>(to + k * p.to_step);
                };
                put(0) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
                put(1) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
                put(2) = __builtin_shufflevector(after_ab, after_cd, 0, 1, 4, 5);
                put(3) = __builtin_shufflevector(after_ab, after_cd, 2, 3, 6, 7);
            }
        }
    }
};

template <class T, Isa isa>
void dot_with_rows(const RowProduct<T>& product) {
    Target<isa>::template call<typename RowProduct<T>::Dots, const RowProduct<T>*>(&product);
}
template <class T, Isa isa>
void add_rows(const RowProduct<T>& product) {
    Target<isa>::template call<typename RowProduct<T>::Sums, const RowProduct<T>*>(&product);
}
template <class T, Isa isa>
void transpose_tile(const TileTranspose<T>& transpose) {
    Target<isa>::template call<TileTranspose<T>, const TileTranspose<T>*>(&transpose);
}
template <class T, Isa isa>
void multiply_tile(const TileProduct<T>& product, [[maybe_unused]] bool rounded) {
#if defined(CATENA_X86)
    if constexpr (std::is_same_v<T, float> && isa == Isa::x86_64_v4)
        if (rounded && MultiplyRoundedTile::supports(product))
            return MultiplyRoundedTile::run(product);
#endif
    Target<isa>::template call<MultiplyTile<T, isa>, const TileProduct<T>*>(&product);
}

}  // namespace catena::plugins
