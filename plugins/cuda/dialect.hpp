// The dialect: source text that precedes every kernel compiled at run time for a GPU. plugins/jit/README.md
// lists what a dialect defines. A kernel takes one struct of arguments by value, and its threads process
// elements and outputs in grid-stride loops.
#pragma once

#include <catena/plugin/dialect.hpp>

namespace catena_cuda {

inline constexpr char dialect_head[] = R"dialect(
#define CATENA_FN __device__ __forceinline__
#define CATENA_OWN_FLOAT16

#define CATENA_EXACT(NAME) \
    CATENA_FN float NAME(float x) { return ::NAME##f(x); } \
    CATENA_FN double NAME(double x) { return ::NAME(x); }
#define CATENA_EXACT_2(NAME) \
    CATENA_FN float NAME(float x, float y) { return ::NAME##f(x, y); } \
    CATENA_FN double NAME(double x, double y) { return ::NAME(x, y); }
#define CATENA_MATH(LEVEL, NAME) CATENA_EXACT(NAME)
#define CATENA_MATH_2(LEVEL, NAME) CATENA_EXACT_2(NAME)

namespace catena_kernel {
)dialect";

inline constexpr char dialect_body[] = R"dialect(
CATENA_FN float load(const float16& h) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h.bits));
    return x;
}
CATENA_FN void store(float16& h, float x) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x));
}

CATENA_FN float rsqrt(float x) { return ::rsqrtf(x); }
CATENA_FN float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
CATENA_FN double fma(double x, double y, double z) { return ::fma(x, y, z); }

// Atomically adds x to *p, for results that several elements share. Returns the old value.
CATENA_FN float atomic_add(float* p, float x) { return atomicAdd(p, x); }
CATENA_FN double atomic_add(double* p, double x) { return atomicAdd(p, x); }
CATENA_FN int32 atomic_add(int32* p, int32 x) { return atomicAdd(p, x); }
CATENA_FN int64 atomic_add(int64* p, int64 x) {
    return (int64)atomicAdd((unsigned long long*)p, (unsigned long long)x);
}

// catena_body() computes. The compiler's table appends the entry of the kernel, which calls it.
#define CATENA_ENTRY(NAME, ARGS) CATENA_FN void catena_body(const ARGS& catena_args) {
#define CATENA_ENTRY_END }
#define CATENA_GRID(I, END) \
    for (int64 I = (int64)blockIdx.x * blockDim.x + threadIdx.x; I < (END); \
         I += (int64)gridDim.x * blockDim.x) {

// Vector loads and stores. A thread reads a pack of adjacent elements into registers with one load,
// because loads of single elements do not use the full memory bandwidth. The last elements, and all
// elements of unaligned arrays, are read one by one.
namespace catena_packs {
template <class T, int N>
struct alignas(sizeof(T) * N) pack {
    T at[N];
    CATENA_FN T& operator[](int64 lane) { return at[lane]; }
};
template <class T, int N>
CATENA_FN bool is_aligned(const pack<T, N>&, const T* p) {
    return (unsigned long long)p % sizeof(pack<T, N>) == 0;
}
template <class T, int N>
CATENA_FN void read(pack<T, N>& to, const T* p, int64 at) { to = ((const pack<T, N>*)p)[at]; }
template <class T, int N>
CATENA_FN void write(const pack<T, N>& from, T* p, int64 at) { ((pack<T, N>*)p)[at] = from; }
// Elements in a pack. The loop over them is unrolled; more than 8 copies of the code do not pay off.
CATENA_FN constexpr int lanes_of(int bytes) { return bytes == 0 ? 1 : bytes == 1 ? 8 : 16 / bytes; }
}
#define CATENA_NOTHING(T, A)
#define CATENA_FIELD(T, A) catena_kernel::catena_packs::pack<T, catena_lanes> A;
#define CATENA_ALIGNED(T, A) && catena_kernel::catena_packs::is_aligned(catena_pack.A, catena_args.A)
#define CATENA_READ(T, A) catena_kernel::catena_packs::read(catena_pack.A, catena_args.A, catena_at);
#define CATENA_WRITE(T, A) catena_kernel::catena_packs::write(catena_pack.A, catena_args.A, catena_at);
#define CATENA_AT(A, I) catena_from.A[catena_lane]
#define CATENA_EACH(I, BYTES) \
    enum { catena_lanes = catena_kernel::catena_packs::lanes_of(BYTES) }; \
    const auto catena_step = [&](auto& catena_from, const int64 catena_lane, const int64 I) \
                                 __attribute__((always_inline)) { \
        (void)catena_from; (void)catena_lane; (void)I;
#define CATENA_EACH_END \
    }; \
    struct { CATENA_PLAIN(CATENA_FIELD, CATENA_FIELD) } catena_pack; \
    int64 catena_whole = 0; \
    if (catena_lanes > 1 CATENA_PLAIN(CATENA_ALIGNED, CATENA_ALIGNED)) \
        catena_whole = catena_args.size / catena_lanes; \
    CATENA_GRID(catena_at, catena_whole) \
        CATENA_PLAIN(CATENA_READ, CATENA_READ) \
        _Pragma("unroll") for (int catena_k = 0; catena_k < catena_lanes; ++catena_k) \
            catena_step(catena_pack, catena_k, catena_at * catena_lanes + catena_k); \
        CATENA_PLAIN(CATENA_NOTHING, CATENA_WRITE) \
    } \
    CATENA_GRID(catena_rest, catena_args.size - catena_whole * catena_lanes) \
        const int64 catena_at = catena_whole * catena_lanes + catena_rest; \
        catena_step(catena_args, catena_at, catena_at); \
    }

// Adds the offsets of element `at` for each array. N: 32 bits where they suffice, as division is slow.
template <int D, class N, class Offset>
CATENA_FN void place(N at, const int64* extent, const int64 (*stride)[D], int k_end,
                     Offset* offset) {
#pragma unroll
    for (int d = D - 1; d >= 0; --d) {
        N index = at;
        if (d > 0) {
            const N size = (N)extent[d];
            index = at % size;
            at /= size;
        }
        for (int k = 0; k < k_end; ++k) offset[k] += (int64)index * stride[k][d];
    }
}
template <int D>
CATENA_FN void place_any(int64 at, int64 size, const int64* extent, const int64 (*stride)[D],
                         int k_end, int64* offset) {
    if (size <= 0x7fffffff) place<D, unsigned>((unsigned)at, extent, stride, k_end, offset);
    else place<D, int64>(at, extent, stride, k_end, offset);
}
template <int D, int K>
struct walk {
    int64 offset[K + 1];
    template <class Args>
    CATENA_FN walk(const Args& a, int64 at) {
        for (int k = 0; k < K; ++k) offset[k] = 0;
        place_any<D>(at, a.size, a.extent, a.stride, K, offset);
    }
};
#define CATENA_WALK(D, K) \
    CATENA_GRID(catena_at, catena_args.size) \
        const catena_kernel::walk<D, K> catena_walk(catena_args, catena_at);
#define CATENA_OFFSET(K) catena_walk.offset[K]
#define CATENA_RUN(I, LANE) \
    { \
        const int64 I = catena_at, LANE = 0; (void)I; (void)LANE;
#define CATENA_WALK_END }}

// Reductions. A team of threads computes the value of one item. The members of a team are adjacent
// threads (x of the block), or, if adjacent items are adjacent in memory, a column (y of the block).
template <class V>
struct alignas(16) slots {
    unsigned char bytes[256 * sizeof(V)];
};
// Returns the value of the thread of the warp with index `thread`, modulo 32.
template <class V>
CATENA_FN V value_of_thread(const V& own, int thread) {
    unsigned words[(sizeof(V) + 3) / 4] = {};
    memcpy(words, &own, sizeof(V));
#pragma unroll
    for (unsigned& word : words) word = __shfl_sync(0xffffffffu, word, thread);
    V other;
    memcpy(&other, words, sizeof(V));
    return other;
}
template <class Op, class V, class Args>
CATENA_FN void reduce(const Args& a) {
    static_assert(sizeof(V) <= 64, "the type of a reduction has at most 64 bytes");
    const int thread = threadIdx.y * blockDim.x + threadIdx.x;
    __shared__ slots<V> buffer;
    const int member = Op::along ? threadIdx.x : threadIdx.y;
    const int team = Op::along ? blockDim.x : blockDim.y;
    const int step = Op::along ? 1 : blockDim.x;  // from a member's slot to the next one's
    const int which = Op::along ? threadIdx.y : threadIdx.x;
    const int teams = Op::along ? blockDim.y : blockDim.x;
    const int64 items = a.outputs * (a.phase == 1 ? a.pieces : 1);
    const V* const partial = (const V*)a.partial;  // the input of phase 2
    for (int64 first = (int64)blockIdx.x * teams; first < items;
         first += (int64)gridDim.x * teams) {
        const int64 item = first + which;
        const bool there = item < items;
        const int64 piece = there ? item / a.outputs : 0, j = there ? item % a.outputs : 0;
        const int64 begin = piece * a.length;
        int64 end = begin + a.length;
        if (end > a.n) end = a.n;
        if (a.phase == 2) end = a.pieces;
        const int64 length = end - begin;
        int filled = Op::has_identity || length > team ? team : (int)length;
        V acc = Op::identity();
        if (there && member < filled) {
            int64 base[Op::inputs + 1], offset[Op::inputs + 1];
            for (int k = 0; k < Op::inputs; ++k) base[k] = 0;
            place_any<Op::kept>(j, a.outputs, a.kept, a.kept_stride, Op::inputs, base);
            bool first_value = !Op::has_identity;
            for (int64 i = begin + member; a.phase == 2 && i < end; i += team) {
                const V value = partial[i * a.outputs + j];
                acc = first_value ? value : Op::join(acc, value);
                first_value = false;
            }
            for (int64 i = begin + member; a.phase != 2 && i < end; i += team) {
                for (int k = 0; k < Op::inputs; ++k) offset[k] = base[k];
                place_any<Op::reduced>(i, a.n, a.reduced, a.reduced_stride, Op::inputs, offset);
                const V value = Op::map(a, offset, 0, i, j);
                acc = first_value ? value : Op::join(acc, value);
                first_value = false;
            }
        }
        // Joins the values of the members below `filled`, in order: the first member of each warp gets
        // the warp's value by shuffles, and member 0 joins those of the warps.
        const int span = team * step;  // threads of a team
        for (int apart = step; apart < 32 && apart < span; apart *= 2) {
            const V other = value_of_thread(acc, thread + apart);
            if (member + apart / step < filled) acc = Op::join(acc, other);
        }
        if (team > 1 && span > 32) {
            V* const shared = (V*)buffer.bytes;
            __syncthreads();
            shared[thread] = acc;
            __syncthreads();
            const int apart = step < 32 ? 32 : step, group = thread - member * step;
            acc = shared[group];
            for (int at = apart; at < span && at / step < filled; at += apart)
                acc = Op::join(acc, shared[group + at]);
        }
        if (!there || member != 0) continue;
        if (a.phase == 1) ((V*)a.partial)[item] = acc;
        else Op::finish(a, acc, j);
    }
}
#define CATENA_REDUCTION(NAME, ARGS, OP, VALUE) \
    CATENA_FN void catena_body(const ARGS& catena_args) { reduce<OP, VALUE>(catena_args); }

}  // namespace catena_kernel
)dialect";
inline constexpr auto dialect =
    catena::plugin::joined_texts(dialect_head, catena::plugin::common_dialect, dialect_body);

}  // namespace catena_cuda
