// Small matrix products in registers, for tiles of attention.
#pragma once

#include <catena/plugin.hpp>

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
void multiply_tile(const TileProduct<T>& product) {
    Target<isa>::template call<MultiplyTile<T, isa>, const TileProduct<T>*>(&product);
}

}  // namespace catena::plugins
