// The dialect: source text that precedes every kernel compiled at run time for the CPU. It includes no
// system headers, so a kernel compiles in 0.1 s. plugins/jit/README.md lists what a dialect defines.
#pragma once

#include <catena/plugin/dialect.hpp>

namespace catena_cpu {

inline constexpr char dialect_head[] = R"dialect(
namespace catena_kernel {

#define CATENA_FN inline __attribute__((always_inline))
#if defined(__clang__)
#define CATENA_PARALLEL _Pragma("clang loop vectorize(assume_safety)")
#else
#define CATENA_PARALLEL _Pragma("GCC ivdep")
#endif

// CATENA_MVEC: which vector functions the system's libmvec has, 1 the oldest few, 2 all of level 1 and 2.
#define CATENA_VECTOR0
#if CATENA_MVEC >= 1 && !defined(__clang__)
#define CATENA_VECTOR1 __attribute__((simd("notinbranch")))
#else
#define CATENA_VECTOR1
#endif
#if CATENA_MVEC >= 2 && !defined(__clang__)
#define CATENA_VECTOR2 __attribute__((simd("notinbranch")))
#else
#define CATENA_VECTOR2
#endif
#define CATENA_MATH(LEVEL, NAME) \
    extern "C" CATENA_VECTOR##LEVEL double NAME(double) noexcept __attribute__((const)); \
    extern "C" CATENA_VECTOR##LEVEL float NAME##f(float) noexcept __attribute__((const)); \
    CATENA_FN float NAME(float x) { return NAME##f(x); }
#define CATENA_MATH_2(LEVEL, NAME) \
    extern "C" CATENA_VECTOR##LEVEL double NAME(double, double) noexcept __attribute__((const)); \
    extern "C" CATENA_VECTOR##LEVEL float NAME##f(float, float) noexcept __attribute__((const)); \
    CATENA_FN float NAME(float x, float y) { return NAME##f(x, y); }
#define CATENA_EXACT(NAME) \
    CATENA_FN float NAME(float x) { return __builtin_##NAME##f(x); } \
    CATENA_FN double NAME(double x) { return __builtin_##NAME(x); }
#define CATENA_EXACT_2(NAME) \
    CATENA_FN float NAME(float x, float y) { return __builtin_##NAME##f(x, y); } \
    CATENA_FN double NAME(double x, double y) { return __builtin_##NAME(x, y); }
)dialect";

inline constexpr char dialect_body[] = R"dialect(
CATENA_FN float rsqrt(float x) { return 1 / sqrt(x); }
CATENA_FN float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
CATENA_FN double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }

// Atomically adds x to *p, for results that several elements share. Returns the old value.
template <class T> CATENA_FN T add_at_once(T* p, T x) {
    T before, after;
    __atomic_load(p, &before, __ATOMIC_RELAXED);
    do after = before + x;
    while (!__atomic_compare_exchange(p, &before, &after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return before;
}
CATENA_FN float atomic_add(float* p, float x) { return add_at_once(p, x); }
CATENA_FN double atomic_add(double* p, double x) { return add_at_once(p, x); }
CATENA_FN int32 atomic_add(int32* p, int32 x) { return add_at_once(p, x); }
CATENA_FN int64 atomic_add(int64* p, int64 x) { return add_at_once(p, x); }

// A run of elements ends where a row does, where the caller's share does, and at multiples of this: so
// vectors and what is left over fall the same for any number of threads.
static constexpr int64 grain = 16384;

#define CATENA_ENTRY(NAME, ARGS) \
    extern "C" __attribute__((visibility("default"))) void NAME( \
        const ARGS* catena_p, int64 catena_begin, int64 catena_end) { \
        const ARGS catena_args = *catena_p; \
        (void)catena_args;
#define CATENA_ENTRY_END }
#define CATENA_AT(A, I) catena_args.A[I]
#define CATENA_EACH(I, BYTES) \
    CATENA_PARALLEL for (int64 catena_i = catena_begin; catena_i < catena_end; ++catena_i) { \
        const int64 I = catena_i; (void)I;
#define CATENA_EACH_END }

// The odometer of D dimensions and K strided arguments.
template <int D, int K>
struct walk {
    int64 at, run, index[D], offset[K + 1];
    template <class Args>
    CATENA_FN walk(const Args& a, int64 begin) : at(begin), run(0) {
        int64 rest = begin;
        for (int d = D - 1; d >= 0; --d) {
            index[d] = rest % a.extent[d];
            rest /= a.extent[d];
        }
    }
    template <class Args>
    CATENA_FN bool next(const Args& a, int64 end) {
        at += run;
        index[D - 1] += run;
        for (int d = D - 1; d > 0 && index[d] == a.extent[d]; --d) {
            index[d] = 0;
            ++index[d - 1];
        }
        if (at >= end) return false;
        run = a.extent[D - 1] - index[D - 1];
        if (run > end - at) run = end - at;
        if (run > grain - at % grain) run = grain - at % grain;
        for (int k = 0; k < K; ++k) {
            offset[k] = 0;
            for (int d = 0; d < D; ++d) offset[k] += index[d] * a.stride[k][d];
        }
        return true;
    }
};
#define CATENA_WALK(D, K) \
    catena_kernel::walk<D, K> catena_walk(catena_args, catena_begin); \
    while (catena_walk.next(catena_args, catena_end)) { \
        const int64 catena_at = catena_walk.at, catena_run = catena_walk.run; \
        (void)catena_at;
#define CATENA_OFFSET(K) catena_walk.offset[K]
#define CATENA_RUN(I, LANE) \
    CATENA_PARALLEL for (int64 LANE = 0; LANE < catena_run; ++LANE) { \
        const int64 I = catena_at + LANE; (void)I;
#define CATENA_WALK_END }}

// Reductions. An item is a piece of what is reduced into one output; partial results of a cut one go to
// memory, and a second launch joins them.
template <class Op, int D>
CATENA_FN void place(int64 at, const int64* extent, const int64 (*stride)[D], int64* index, int64* offset) {
    for (int d = D - 1; d >= 0; --d) {
        index[d] = at % extent[d];
        at /= extent[d];
    }
    for (int k = 0; k < Op::inputs; ++k) {
        offset[k] = 0;
        for (int d = 0; d < D; ++d) offset[k] += index[d] * stride[k][d];
    }
}

template <class Op, class V, class Args>
CATENA_FN void put(const Args& a, int64 piece, int64 j, V value) {
    if (a.phase == 0) Op::finish(a, value, j);
    else ((V*)a.partial)[piece * a.outputs + j] = value;
}

// Lanes along what is reduced: many partial values, so that the loop over them is one of vectors.
template <class Op, class V, class Args>
CATENA_FN void reduce_row(const Args& a, int64 piece, int64 j) {
    constexpr int lanes = sizeof(V) <= 8 ? 256 / sizeof(V) : 4, K = Op::inputs, R = Op::reduced;
    int64 begin = piece * a.length, end = begin + a.length;
    if (end > a.n) end = a.n;
    int64 index[Op::kept > R ? Op::kept : R], base[K + 1], offset[K + 1];
    place<Op, Op::kept>(j, a.kept, a.kept_stride, index, base);
    V acc[lanes];
    int filled = 0;
    if (Op::has_identity) {
        for (int l = 0; l < lanes; ++l) acc[l] = Op::identity();
        filled = lanes;
    }
    for (int64 i = begin; i < end;) {
        place<Op, R>(i, a.reduced, a.reduced_stride, index, offset);
        for (int k = 0; k < K; ++k) offset[k] += base[k];
        int64 run = a.reduced[R - 1] - index[R - 1], at = 0;
        if (run > end - i) run = end - i;
        // Without an identity the first elements are the first values.
        for (; filled < lanes && at < run; ++at, ++filled) acc[filled] = Op::map(a, offset, at, i + at, j);
        for (; at + lanes <= run; at += lanes)
            CATENA_PARALLEL for (int l = 0; l < lanes; ++l)
                acc[l] = Op::join(acc[l], Op::map(a, offset, at + l, i + at + l, j));
        for (int l = 0; at < run; ++at, ++l) acc[l] = Op::join(acc[l], Op::map(a, offset, at, i + at, j));
        i += run;
    }
    // In halves, as far as there are values.
    for (int width = lanes / 2; width > 0; width /= 2)
        for (int l = 0; l < width; ++l)
            if (l + width < filled) acc[l] = Op::join(acc[l], acc[l + width]);
    put<Op, V>(a, piece, j, acc[0]);
}

// Lanes across: neighbouring outputs, each with a value of its own.
template <class Op, class V, class Args>
CATENA_FN void reduce_columns(const Args& a, int64 piece, int64 first, int width) {
    constexpr int lanes = sizeof(V) <= 8 ? 512 / sizeof(V) : 16, K = Op::inputs, R = Op::reduced;
    int64 begin = piece * a.length, end = begin + a.length;
    if (end > a.n) end = a.n;
    int64 index[Op::kept > R ? Op::kept : R], base[K + 1], offset[K + 1];
    place<Op, Op::kept>(first, a.kept, a.kept_stride, index, base);
    V acc[lanes];
    if (Op::has_identity)
        for (int l = 0; l < width; ++l) acc[l] = Op::identity();
    int64 place_in_run = 0, run = 0;
    for (int64 i = begin; i < end; ++i, ++place_in_run) {
        if (place_in_run == run) {
            place<Op, R>(i, a.reduced, a.reduced_stride, index, offset);
            for (int k = 0; k < K; ++k) offset[k] += base[k];
            run = a.reduced[R - 1] - index[R - 1];
            place_in_run = 0;
        }
        if (!Op::has_identity && i == begin)
            CATENA_PARALLEL for (int l = 0; l < width; ++l)
                acc[l] = Op::map(a, offset, l, i, first + l);
        else if (width == lanes)
            CATENA_PARALLEL for (int l = 0; l < lanes; ++l)
                acc[l] = Op::join(acc[l], Op::map(a, offset, l, i, first + l));
        else
            CATENA_PARALLEL for (int l = 0; l < width; ++l)
                acc[l] = Op::join(acc[l], Op::map(a, offset, l, i, first + l));
        for (int k = 0; k < K; ++k) offset[k] += a.reduced_stride[k][R - 1];
    }
    for (int l = 0; l < width; ++l) put<Op, V>(a, piece, first + l, acc[l]);
}

template <class Op, class V, class Args>
CATENA_FN void reduce(const Args& a, int64 item, int64 end) {
    static_assert(sizeof(V) <= 64, "the type of a reduction has at most 64 bytes");
    constexpr int lanes = sizeof(V) <= 8 ? 512 / sizeof(V) : 16;
    if (a.phase == 2) {
        for (int64 j = item; j < end; ++j) {
            const V* partial = (const V*)a.partial + j;
            V acc = *partial;
            for (int64 piece = 1; piece < a.pieces; ++piece) acc = Op::join(acc, partial[piece * a.outputs]);
            Op::finish(a, acc, j);
        }
        return;
    }
    while (item < end) {
        const int64 piece = item / a.outputs, j = item % a.outputs;
        if (Op::along) {
            reduce_row<Op, V>(a, piece, j);
            ++item;
            continue;
        }
        int64 width = a.kept[Op::kept - 1] - j % a.kept[Op::kept - 1];
        if (width > lanes) width = lanes;
        if (width > end - item) width = end - item;
        reduce_columns<Op, V>(a, piece, j, (int)width);
        item += width;
    }
}
#define CATENA_REDUCTION(NAME, ARGS, OP, VALUE) \
    extern "C" __attribute__((visibility("default"))) void NAME( \
        const ARGS* catena_p, int64 catena_begin, int64 catena_end) { \
        const ARGS catena_args = *catena_p; \
        reduce<OP, VALUE>(catena_args, catena_begin, catena_end); \
    }

}  // namespace catena_kernel
)dialect";
inline constexpr auto dialect =
    catena::plugin::joined_texts(dialect_head, catena::plugin::common_dialect, dialect_body);

}  // namespace catena_cpu
