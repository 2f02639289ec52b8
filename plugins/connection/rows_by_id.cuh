// Rows by id, on CUDA: gathered from a table, and added up into one in an order that the ids alone
// decide, without atomics. Nobody waits for the device to tell of an id that is no row: where such a
// row is asked for it is NaN, and what would be added to it is added nowhere.
#pragma once

#include <limits>

#include "columns.cuh"
#include "embed_id.hpp"

namespace catena::plugins {

// Ids, of 4 or 8 bytes each.
struct IdList {
    static constexpr int most = 64;  // values that are ignored; more are left to other kernels
    static constexpr std::int64_t ignored = -1;
    static constexpr std::int64_t wrong = -2;

    // The row of the i-th id, or why there is none.
    __device__ __forceinline__ std::int64_t row(std::int64_t i) const {
        const std::int64_t id = wide ? static_cast<const std::int64_t*>(ids)[i]
                                     : std::int64_t{static_cast<const std::int32_t*>(ids)[i]};
        for (int k = 0; k < n_values; ++k)
            if (id == value[k]) return ignored;
        return id >= 0 && id < rows ? id : wrong;
    }

    const void* ids;
    std::int64_t rows;
    std::int32_t wide;
    std::int32_t n_values;
    std::int64_t value[most];
};
template <class I>
IdList id_list(const I* ids, std::int64_t rows, Ints ignored = {}) {
    IdList list = {.ids = ids,
                   .rows = rows,
                   .wide = sizeof(I) == 8,
                   .n_values = static_cast<std::int32_t>(ignored.size()),
                   .value = {}};
    std::ranges::copy(ignored, list.value);
    return list;
}

template <class T>
struct Gathered {
    IdList ids;
    Columns columns;
    const T* table;
    T* y;
    std::int64_t threads;
    std::int64_t add;
};
template <class T>
__global__ void __launch_bounds__(cuda::block)
    gather_rows_kernel(const __grid_constant__ Gathered<T> p) {
    using C = cuda::Compute<T>;
    constexpr int w = cuda::pack_width<T>();
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * cuda::block;
    for (std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * cuda::block + threadIdx.x;
         t < p.threads; t += step) {
        const Strip<w> strip(p.columns, t);
        const std::int64_t row = p.ids.row(strip.thing);
        C v[w];
        CATENA_UNROLL
        for (int j = 0; j < w; ++j)
            v[j] = row == IdList::wrong ? std::numeric_limits<C>::quiet_NaN() : C(0);
        if (row >= 0) strip.load(p.table + row * p.columns.size, v);
        strip.store(p.y + strip.thing * p.columns.size, p.add != 0, v);
    }
}
// y[i] = table[ids[i]], n rows of `size` elements, or added to y.
template <class T>
void gather_on_device(const cuda::Queue& queue, const IdList& ids, std::int64_t n, const T* table,
                      std::int64_t size, T* y, bool add) {
    constexpr int w = cuda::pack_width<T>();
    if (n * size == 0) return;
    const Columns columns(size, w, cuda::is_aligned<T, w>(table) && cuda::is_aligned<T, w>(y));
    const Gathered<T> p = {.ids = ids,
                           .columns = columns,
                           .table = table,
                           .y = y,
                           .threads = columns.threads(n),
                           .add = add};
    queue.launch(&gather_rows_kernel<T>, queue.grid(p.threads), cuda::block, p);
}

// Sorted by row, then by place: a key is row * 2^bits + place, `rows` in it stands for none. The first
// pass sorts tiles, each of the others joins two runs into one.
inline constexpr int sort_tile = 2048;
__global__ void __launch_bounds__(cuda::block)
    sort_ids_kernel(const __grid_constant__ IdList ids, std::int64_t n, int bits, int size,
                    std::uint64_t* keys) {
    __shared__ std::uint64_t tile[sort_tile];
    const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * sort_tile;
    for (int k = static_cast<int>(threadIdx.x); k < size; k += cuda::block) {
        const std::int64_t i = begin + k;
        const std::int64_t row = i < n ? ids.row(i) : 0;
        tile[k] = i < n ? static_cast<std::uint64_t>(row >= 0 ? row : ids.rows) << bits |
                              static_cast<std::uint64_t>(i)
                        : ~std::uint64_t{0};
    }
    for (int run = 2; run <= size; run *= 2)  // bitonic
        for (int step = run / 2; step > 0; step /= 2) {
            __syncthreads();
            for (int k = static_cast<int>(threadIdx.x); k < size / 2; k += cuda::block) {
                const int low = (k & ~(step - 1)) << 1 | (k & (step - 1));
                const std::uint64_t a = tile[low];
                const std::uint64_t b = tile[low + step];
                if ((a > b) != ((low & run) == 0)) continue;
                tile[low] = b;
                tile[low + step] = a;
            }
        }
    __syncthreads();
    for (int k = static_cast<int>(threadIdx.x); k < size && begin + k < n; k += cuda::block)
        keys[begin + k] = tile[k];
}
// How many of n sorted keys are less than `key`; none is equal.
__device__ __forceinline__ std::int64_t keys_below(const std::uint64_t* keys, std::int64_t n,
                                                   std::uint64_t key) {
    std::int64_t low = 0;
    while (n > 0) {
        const std::int64_t half = n / 2;
        const bool beyond = keys[low + half] < key;
        low += beyond ? half + 1 : 0;
        n = beyond ? n - half - 1 : half;
    }
    return low;
}
__global__ void __launch_bounds__(cuda::block)
    merge_ids_kernel(const std::uint64_t* from, std::uint64_t* to, std::int64_t n, int run_bits) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * cuda::block;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * cuda::block + threadIdx.x; i < n;
         i += step) {
        const std::uint64_t key = from[i];
        const std::int64_t run = i >> run_bits;
        const std::int64_t other = (run ^ 1) << run_bits;
        const std::int64_t left = n - other < 0 ? 0 : n - other;
        const std::int64_t length = std::int64_t{1} << run_bits;
        const std::int64_t before = keys_below(from + other, left < length ? left : length, key);
        to[(run >> 1 << (run_bits + 1)) + (i - (run << run_bits)) + before] = key;
    }
}

// Rows added up into a table. The sorted places are cut into chunks. A run of equal ids within one is
// added up there and goes to the table; of a run that goes on, each chunk leaves its part in scratch,
// and the one where it begins adds those up, in order.
template <class T>
struct RowSums {
    using C = cuda::Compute<T>;

    __device__ __forceinline__ std::int64_t row(std::int64_t k) const {
        return static_cast<std::int64_t>(keys[k] >> bits);
    }
    __device__ __forceinline__ std::int64_t place(std::int64_t k) const {
        return static_cast<std::int64_t>(keys[k] & ((std::uint64_t{1} << bits) - 1));
    }
    // A chunk's part of the run that came into it, and of that which begins in it and goes on.
    __device__ __forceinline__ C* part(std::int64_t chunk, int which) const {
        return parts + (2 * chunk + which) * columns.size;
    }

    const std::uint64_t* keys;
    std::int64_t n;
    std::int64_t n_rows;
    std::int32_t bits, chunk_bits;
    Columns columns;
    const T* rows;     // of place i: row i / each, times factors[i]
    const C* factors;  // null: all 1
    cuda::Divider<std::uint64_t> each;
    T* table;
    C* parts;
    std::int64_t threads;
    std::int64_t add;
};

template <class T>
__global__ void __launch_bounds__(cuda::block)
    sum_rows_kernel(const __grid_constant__ RowSums<T> p) {
    using C = cuda::Compute<T>;
    constexpr int w = cuda::pack_width<T>();
    constexpr int batch = 4;  // rows whose loads are on their way together
    const std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * cuda::block + threadIdx.x;
    if (t >= p.threads) return;
    const Strip<w> strip(p.columns, t);
    const std::int64_t chunk = strip.thing;
    const std::int64_t begin = chunk << p.chunk_bits;
    const std::int64_t next = (chunk + 1) << p.chunk_bits;
    const std::int64_t end = next < p.n ? next : p.n;
    std::int64_t row = p.row(begin);
    bool came = begin > 0 && p.row(begin - 1) == row;
    C sum[w] = {};
    const auto leave = [&](bool goes_on) {
        if (came) strip.store(p.part(chunk, 0), false, sum);
        else if (goes_on) strip.store(p.part(chunk, 1), false, sum);
        else strip.store(p.table + row * p.columns.size, p.add != 0, sum);
    };
    for (std::int64_t k = begin; k < end && row < p.n_rows; k += batch) {
        std::int64_t of[batch];
        C v[batch][w];
        CATENA_UNROLL
        for (int b = 0; b < batch; ++b) {
            of[b] = k + b < end ? p.row(k + b) : p.n_rows;
            if (of[b] >= p.n_rows) continue;
            const std::int64_t i = p.place(k + b);
            const auto from =
                static_cast<std::int64_t>(p.each.quotient(static_cast<std::uint64_t>(i)));
            strip.load(p.rows + from * p.columns.size, v[b]);
            if (p.factors == nullptr) continue;
            const C factor = p.factors[i];
            CATENA_UNROLL
            for (int j = 0; j < w; ++j) v[b][j] *= factor;
        }
        CATENA_UNROLL
        for (int b = 0; b < batch; ++b) {
            if (k + b >= end) continue;
            const bool other = of[b] != row;
            if (other && row < p.n_rows) leave(false);
            came = came && !other;
            row = of[b];
            CATENA_UNROLL
            for (int j = 0; j < w; ++j) sum[j] = (other ? C(0) : sum[j]) + v[b][j];
        }
    }
    if (row < p.n_rows) leave(end < p.n && p.row(end) == row);
}
// The runs that go on beyond the chunk where they begin.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    join_rows_kernel(const __grid_constant__ RowSums<T> p) {
    using C = cuda::Compute<T>;
    constexpr int w = cuda::pack_width<T>();
    constexpr int batch = 4;
    const std::int64_t t = static_cast<std::int64_t>(blockIdx.x) * cuda::block + threadIdx.x;
    if (t >= p.threads) return;
    const Strip<w> strip(p.columns, t);
    const std::int64_t chunk = strip.thing;
    const std::int64_t begin = chunk << p.chunk_bits;
    const std::int64_t end = (chunk + 1) << p.chunk_bits;
    if (end >= p.n) return;
    const std::int64_t row = p.row(end);
    if (row >= p.n_rows || p.row(end - 1) != row) return;
    if (begin > 0 && p.row(begin - 1) == row) return;
    const std::uint64_t beyond = static_cast<std::uint64_t>(row + 1) << p.bits;
    const std::int64_t last =  // chunk that has some of it
        (end + keys_below(p.keys + end, p.n - end, beyond) - 1) >> p.chunk_bits;
    C sum[w] = {};
    strip.load(p.part(chunk, 1), sum);
    for (std::int64_t c = chunk + 1; c <= last; c += batch) {
        C v[batch][w] = {};
        CATENA_UNROLL
        for (int b = 0; b < batch; ++b)
            if (c + b <= last) strip.load(p.part(c + b, 0), v[b]);
        CATENA_UNROLL
        for (int b = 0; b < batch; ++b) {
            CATENA_UNROLL
            for (int j = 0; j < w; ++j) sum[j] += v[b][j];
        }
    }
    strip.store(p.table + row * p.columns.size, p.add != 0, sum);
}

// What is to be added up: n rows into a table of `rows` rows of `size` elements of T.
template <class T>
struct RowSumPlan {
    using C = cuda::Compute<T>;

    // CATENA_E_UNSUPPORTED: more ids and rows than a key has bits for.
    RowSumPlan(const char* function, std::int64_t count, std::int64_t n_rows, std::int64_t row_size,
               Room& room)
        : n(count), rows(n_rows), size(row_size) {
        const auto width = [](std::int64_t x) {
            return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(x)));
        };
        bits = width(std::max<std::int64_t>(n - 1, 1));
        if (bits + width(rows) > 64)
            fail(CATENA_E_UNSUPPORTED, function, "x", "ids and rows that fit into 64 bits", n);
        chunk_bits = std::max(3, width(n) / 2 - 2);
        keys = room.take<std::uint64_t>(n);
        if (n > sort_tile) others = room.take<std::uint64_t>(n);
        if (chunks() > 1) parts = room.take<C>(2 * chunks() * size);
    }
    std::int64_t chunks() const { return (n + (std::int64_t{1} << chunk_bits) - 1) >> chunk_bits; }

    std::int64_t n, rows, size;  // n may become less
    int bits, chunk_bits;
    std::uint64_t* keys;
    std::uint64_t* others = nullptr;
    C* parts = nullptr;
};
template <class T>
void sum_rows_on_device(const cuda::Queue& queue, RowSumPlan<T> plan, const IdList& ids,
                        const T* rows, const cuda::Compute<T>* factors, std::int64_t each, T* table,
                        bool add) {
    constexpr int w = cuda::pack_width<T>();
    if (plan.n == 0 || plan.rows * plan.size == 0) return;
    const auto tiles = static_cast<unsigned>((plan.n + sort_tile - 1) / sort_tile);
    const auto size = static_cast<int>(
        std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>(plan.n, sort_tile))));
    queue.launch(&sort_ids_kernel, dim3(tiles), cuda::block, ids, plan.n, plan.bits, size,
                 plan.keys);
    for (int run = std::bit_width(unsigned{sort_tile}) - 1; std::int64_t{1} << run < plan.n;
         ++run) {
        queue.launch(&merge_ids_kernel, queue.grid(plan.n), cuda::block, plan.keys, plan.others,
                     plan.n, run);
        std::swap(plan.keys, plan.others);
    }
    const Columns columns(plan.size, w,
                          cuda::is_aligned<T, w>(rows) && cuda::is_aligned<T, w>(table));
    const RowSums<T> p = {.keys = plan.keys,
                          .n = plan.n,
                          .n_rows = plan.rows,
                          .bits = plan.bits,
                          .chunk_bits = plan.chunk_bits,
                          .columns = columns,
                          .rows = rows,
                          .factors = factors,
                          .each = cuda::Divider<std::uint64_t>(static_cast<std::uint64_t>(each)),
                          .table = table,
                          .parts = plan.parts,
                          .threads = columns.threads(plan.chunks()),
                          .add = add};
    const dim3 blocks(static_cast<unsigned>((p.threads + cuda::block - 1) / cuda::block));
    queue.launch(&sum_rows_kernel<T>, blocks, cuda::block, p);
    if (plan.chunks() > 1) queue.launch(&join_rows_kernel<T>, blocks, cuda::block, p);
}

}  // namespace catena::plugins
