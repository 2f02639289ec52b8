// Sums of rows by id, on CUDA: without atomics, in an order that depends only on the ids.
#pragma once

#include <bit>

#include "catena/plugin/cuda/elementwise.cuh"

namespace catena::plugin::cuda {

// A key to sort the ids' positions by row, then by position: row * 2^bits + position. The row
// `rows` stands for an id without a row.
template <class Ids>
struct RowKeys {
    __device__ __forceinline__ std::uint64_t operator()(std::int64_t i) const {
        const std::int64_t row = ids.row(i);
        return static_cast<std::uint64_t>(row >= 0 ? row : ids.rows) << bits |
               static_cast<std::uint64_t>(i);
    }
    Ids ids;
    std::uint64_t* keys;
    std::int64_t n;
    std::int64_t bits;
};
// Returns the index of key i after pairs of sorted runs of 2^bits keys are merged: the number of
// keys before it in its run, and of smaller keys in the other.
__device__ __forceinline__ std::int64_t merged_index(const std::uint64_t* from, std::int64_t n,
                                                     std::int64_t bits, std::int64_t i) {
    const std::int64_t run = i >> bits;
    const std::int64_t start = (run ^ 1) << bits;
    const std::int64_t other = start < n ? start : n;
    std::int64_t before = other;
    std::int64_t end = start + (std::int64_t{1} << bits);
    for (end = end < n ? end : n; before < end;) {
        const std::int64_t middle = (before + end) / 2;
        if (from[middle] < from[i]) before = middle + 1;
        else end = middle;
    }
    return (run >> 1 << (bits + 1)) + (i - (run << bits)) + before - other;
}
inline constexpr int sorted_bits = 10;
// Each block sorts 2^sorted_bits keys in shared memory.
template <class Ids>
__global__ void __launch_bounds__(block) sort_kernel(const __grid_constant__ RowKeys<Ids> key) {
    __shared__ std::uint64_t keys[2][1 << sorted_bits];
    const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) << sorted_bits;
    const std::int64_t n = key.n - first < (1 << sorted_bits) ? key.n - first : 1 << sorted_bits;
    for (std::int64_t i = threadIdx.x; i < n; i += block) keys[0][i] = key(first + i);
    int side = 0;
    for (int bits = 0; std::int64_t{1} << bits < n; ++bits, side ^= 1) {
        __syncthreads();
        for (std::int64_t i = threadIdx.x; i < n; i += block)
            keys[side ^ 1][merged_index(keys[side], n, bits, i)] = keys[side][i];
    }
    __syncthreads();
    for (std::int64_t i = threadIdx.x; i < n; i += block) key.keys[first + i] = keys[side][i];
}
struct MergedKeys {
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        to[merged_index(from, n, bits, i)] = from[i];
    }
    const std::uint64_t* from;
    std::uint64_t* to;
    std::int64_t n;
    std::int64_t bits;
};

// Adds rows to a table: the thread at a row's first key adds up the rows of all its keys.
template <class T>
struct RowSums {
    using C = Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        std::int64_t k = i / size;
        const std::int64_t column = i % size;
        const std::uint64_t row = keys[k] >> bits;
        if (row >= static_cast<std::uint64_t>(n_rows) || (k > 0 && keys[k - 1] >> bits == row))
            return;
        C sum = 0;
        for (; k < n && keys[k] >> bits == row; ++k) {
            const auto place = static_cast<std::int64_t>(keys[k] - (row << bits));
            sum += load_as<C>(rows[place * size + column]);
        }
        store(table[static_cast<std::int64_t>(row) * size + column], add != 0, sum);
    }
    std::int64_t n, n_rows, size;
    const T* rows;  // position i adds row i
    T* table;
    std::int64_t add;
    const std::uint64_t* keys = nullptr;
    std::int64_t bits = 0;
};

// Returns the bytes of scratch memory that sum_rows_on_device() needs for n rows.
inline std::uint64_t row_sums_bytes(std::int64_t n) {
    return 2 * static_cast<std::uint64_t>(n) * sizeof(std::uint64_t);
}
// Adds rows to a table by id. ids.row(i) is the row for position i, negative for none; ids.rows is
// the number of rows of the table. Sets the keys and bits of `sums`; the caller sets the rest.
template <class T, class Ids>
void sum_rows_on_device(const Queue& queue, const Ids& ids, RowSums<T> sums,
                        std::uint64_t* scratch) {
    const auto width = [](std::int64_t x) { return std::bit_width(static_cast<std::uint64_t>(x)); };
    sums.bits = width(std::max<std::int64_t>(sums.n - 1, 1));
    if (sums.bits + width(sums.n_rows) > 64)
        fail(CATENA_E_UNSUPPORTED, queue.function, "x", "ids and rows that fit into 64 bits",
             sums.n);
    std::uint64_t* keys = scratch;
    std::uint64_t* others = scratch + sums.n;
    if (sums.n == 0) return;
    constexpr std::int64_t sorted = std::int64_t{1} << sorted_bits;
    queue.launch(&sort_kernel<Ids>, dim3(static_cast<unsigned>((sums.n + sorted - 1) / sorted)),
                 block, RowKeys<Ids>{ids, keys, sums.n, sums.bits});
    for (std::int64_t bits = sorted_bits; std::int64_t{1} << bits < sums.n; ++bits) {
        each(queue, sums.n, MergedKeys{keys, others, sums.n, bits});
        std::swap(keys, others);
    }
    sums.keys = keys;
    each(queue, sums.n * sums.size, sums);
}

}  // namespace catena::plugin::cuda
