// Inner loops of convolutions, for each instruction set: products of 6 rows with a few vectors, held
// in registers, and the copies that feed them.
#pragma once

#include "convolution.hpp"

namespace catena::plugins {

// A part of a tile's columns that lies in one row of an image.
struct Run {
    std::int64_t column;
    std::int64_t place;  // where it begins among the planes, for the tap at offset 0
    std::int64_t image;  // where it begins among the results
    std::int64_t length;
};

// What is summed over: lines of places that lie side by side, in several images.
struct Places {
    std::int64_t images, lines, length;
    std::int64_t image_step, line_step;
};

inline constexpr int tile_rows = 6;

// Vectors are as wide as the instruction set has them; the compiler would cut them up if they stood
// in a function that is only inlined into one for that set. So the code is made once for each set.
//
// product: out[r][0 .. N vectors) = sum over i < k of a[i][r] * b[i][...], r < rows <= R, plus bias[r]
// (may be null), or added to out. a has tile_rows numbers for each i, b N vectors every `step`.
//
// correlate: out[r][...] = sum over the places p of a[offset[r] + p] times the place's N vectors in b,
// or added to out.
//
// pack: a row of panel for each tap, with the runs' elements. Up to a vector more is read and
// written after the end of each run.
//
// spread: the reverse, adds a row of a tile to the places of its runs, and to no other.
//
// turn: panel[i][r] = from[r][i] for i < n and r < rows, 0 for the other r < width.
#define CATENA_CONVOLUTION_TILES(attribute, bytes, most)                                           \
    static constexpr int most_vectors = most;                                                      \
    template <class T>                                                                             \
    static constexpr std::int64_t lanes = (bytes) / sizeof(T);                                     \
                                                                                                   \
    template <class T, int R, int N>                                                               \
    attribute static void product(const T* a, const T* b, std::int64_t step, std::int64_t k,       \
                                  T* out, std::int64_t ld, std::int64_t rows, const T* bias,       \
                                  bool add) {                                                      \
        typedef T Vector __attribute__((vector_size(bytes)));                                      \
        typedef T Loose __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));       \
        Vector sum[R][N];                                                                          \
        CATENA_EACH(r, R) CATENA_EACH(j, N) sum[r][j] = Vector{};                                  \
        for (std::int64_t i = 0; i < k; ++i, a += tile_rows, b += step) {                          \
            Vector v[N];                                                                           \
            CATENA_EACH(j, N) v[j] = *reinterpret_cast<const Loose*>(b + j * lanes<T>);            \
            CATENA_EACH(r, R) CATENA_EACH(j, N) sum[r][j] += a[r] * v[j];                          \
        }                                                                                          \
        CATENA_EACH(r, R) {                                                                        \
            if (r == rows) break;                                                                  \
            CATENA_EACH(j, N) {                                                                    \
                Loose& target = *reinterpret_cast<Loose*>(out + r * ld + j * lanes<T>);            \
                if (bias != nullptr) sum[r][j] += bias[r];                                         \
                target = add ? target + sum[r][j] : sum[r][j];                                     \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    template <class T, int R, int N>                                                               \
    attribute static void correlate(const T* a, const std::int64_t* offset, const Places& places,  \
                                    const T* b, T* out, std::int64_t ld, bool add) {               \
        typedef T Vector __attribute__((vector_size(bytes)));                                      \
        typedef T Loose __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));       \
        Vector sum[R][N];                                                                          \
        const T* from[R];                                                                          \
        CATENA_EACH(r, R) from[r] = a + offset[r];                                                 \
        CATENA_EACH(r, R) CATENA_EACH(j, N) sum[r][j] = Vector{};                                  \
        for (std::int64_t n = 0; n < places.images; ++n) {                                         \
            for (std::int64_t y = 0; y < places.lines; ++y) {                                      \
                for (std::int64_t x = 0; x < places.length; ++x, b += N * lanes<T>) {              \
                    Vector v[N];                                                                   \
                    CATENA_EACH(j, N) v[j] = *reinterpret_cast<const Loose*>(b + j * lanes<T>);    \
                    CATENA_EACH(r, R) CATENA_EACH(j, N) sum[r][j] += from[r][x] * v[j];            \
                }                                                                                  \
                CATENA_EACH(r, R) from[r] += places.line_step;                                     \
            }                                                                                      \
            CATENA_EACH(r, R) from[r] += places.image_step - places.lines * places.line_step;      \
        }                                                                                          \
        CATENA_EACH(r, R) CATENA_EACH(j, N) {                                                      \
            Loose& target = *reinterpret_cast<Loose*>(out + r * ld + j * lanes<T>);                \
            target = add ? target + sum[r][j] : sum[r][j];                                         \
        }                                                                                          \
    }                                                                                              \
    template <class T>                                                                             \
    attribute static void pack(const T* planes, const std::int64_t* taps, std::int64_t k,          \
                               const Run* runs, std::int64_t n_runs, T* panel,                     \
                               std::int64_t step) {                                                \
        typedef T Loose __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));       \
        for (std::int64_t i = 0; i < k; ++i, panel += step)                                        \
            for (const Run* run = runs; run != runs + n_runs; ++run) {                             \
                const T* from = planes + taps[i] + run->place;                                     \
                T* to = panel + run->column;                                                       \
                for (std::int64_t j = 0; j < run->length; j += lanes<T>)                           \
                    *reinterpret_cast<Loose*>(to + j) = *reinterpret_cast<const Loose*>(from + j); \
            }                                                                                      \
    }                                                                                              \
    template <class T>                                                                             \
    attribute static void spread(const T* row, const Run* runs, std::int64_t n_runs, T* planes) {  \
        typedef T Loose __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));       \
        typedef T Half __attribute__((vector_size(bytes / 2), aligned(alignof(T)), may_alias));    \
        constexpr std::int64_t half = lanes<T> / 2;                                                \
        for (const Run* run = runs; run != runs + n_runs; ++run) {                                 \
            const T* from = row + run->column;                                                     \
            T* to = planes + run->place;                                                           \
            T* const end = to + run->length;                                                       \
            for (; end - to >= lanes<T>; to += lanes<T>, from += lanes<T>)                         \
                *reinterpret_cast<Loose*>(to) += *reinterpret_cast<const Loose*>(from);            \
            if (end - to >= half) {                                                                \
                *reinterpret_cast<Half*>(to) += *reinterpret_cast<const Half*>(from);              \
                to += half, from += half;                                                          \
            }                                                                                      \
            while (to < end) *to++ += *from++;                                                     \
        }                                                                                          \
    }                                                                                              \
    template <class T>                                                                             \
    attribute static void turn(const T* from, std::int64_t step, std::int64_t rows,                \
                               std::int64_t n, T* panel, std::int64_t width) {                     \
        typedef T Loose __attribute__((vector_size(16), aligned(alignof(T)), may_alias));          \
        constexpr std::int64_t side = 16 / sizeof(T);                                              \
        for (std::int64_t j = 0; j < width; j += side, from += side * step) {                      \
            std::int64_t i = 0;                                                                    \
            for (; j + side <= rows && i + side <= n; i += side) {                                 \
                Loose v[side];                                                                     \
                CATENA_EACH(r, side) v[r] = *reinterpret_cast<const Loose*>(from + r * step + i);  \
                CATENA_TRANSPOSE(v)                                                                \
                CATENA_EACH(r, side)                                                               \
                *reinterpret_cast<Loose*>(panel + (i + r) * width + j) = v[r];                     \
            }                                                                                      \
            for (; i < n; ++i) CATENA_EACH(r, side)                                                \
            panel[i * width + j + r] = j + r < rows ? from[r * step + i] : T(0);                   \
        }                                                                                          \
    }
// A square of numbers in 16-byte vectors.
#define CATENA_TRANSPOSE(v)                                              \
    if constexpr (sizeof(T) == 4) {                                      \
        const Loose a = __builtin_shufflevector(v[0], v[2], 0, 4, 1, 5); \
        const Loose b = __builtin_shufflevector(v[1], v[3], 0, 4, 1, 5); \
        const Loose c = __builtin_shufflevector(v[0], v[2], 2, 6, 3, 7); \
        const Loose d = __builtin_shufflevector(v[1], v[3], 2, 6, 3, 7); \
        v[0] = __builtin_shufflevector(a, b, 0, 4, 1, 5);                \
        v[1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);                \
        v[2] = __builtin_shufflevector(c, d, 0, 4, 1, 5);                \
        v[3] = __builtin_shufflevector(c, d, 2, 6, 3, 7);                \
    } else {                                                             \
        const Loose a = __builtin_shufflevector(v[0], v[1], 0, 2);       \
        v[1] = __builtin_shufflevector(v[0], v[1], 1, 3);                \
        v[0] = a;                                                        \
    }
#if defined(__clang__) || defined(__CUDACC__)
#define CATENA_EACH(i, n) _Pragma("unroll") for (int i = 0; i < (n); ++i)
#else
#define CATENA_EACH(i, n) _Pragma("GCC unroll 16") for (int i = 0; i < (n); ++i)
#endif

template <Isa isa>
struct Tiles {
    CATENA_CONVOLUTION_TILES(, 16, 2)
};
#if defined(CATENA_X86)
template <>
struct Tiles<Isa::x86_64_v3> {
    CATENA_CONVOLUTION_TILES(CATENA_TARGET_V3, 32, 2)
};
template <>
struct Tiles<Isa::x86_64_v4> {
    CATENA_CONVOLUTION_TILES(CATENA_TARGET_V4, 64, 4)
};
#endif
#undef CATENA_CONVOLUTION_TILES
#undef CATENA_TRANSPOSE
#undef CATENA_EACH

// Calls f with the fewest rows that hold `rows`, and with `vectors`, as constants.
template <int rows, int most, class F>
CATENA_KERNEL void with_vectors(std::int64_t vectors, const F& f) {
    constexpr std::integral_constant<int, rows> r;
    if (vectors == 1) return f(r, std::integral_constant<int, 1>());
    if constexpr (most > 2) {
        if (vectors == 3) return f(r, std::integral_constant<int, 3>());
        if (vectors == 4) return f(r, std::integral_constant<int, 4>());
    }
    f(r, std::integral_constant<int, 2>());
}
template <int most, class F>
CATENA_KERNEL void with_tile(std::int64_t rows, std::int64_t vectors, const F& f) {
    if (rows > 4) with_vectors<6, most>(vectors, f);
    else if (rows > 2) with_vectors<4, most>(vectors, f);
    else with_vectors<2, most>(vectors, f);
}

}  // namespace catena::plugins
