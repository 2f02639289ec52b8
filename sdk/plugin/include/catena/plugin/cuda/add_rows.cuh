// Sums of rows by id, on CUDA: without atomics, in an order that depends only on the ids.
#pragma once

#include <bit>

#include "catena/plugin/cuda/elementwise.cuh"

namespace catena::plugin::cuda {

// Sorts the ids' positions by row, then by position. A key is row * 2^bits + position; the row
// `rows` stands for an id without a row. Each pass merges pairs of sorted runs of keys.
template <class Ids>
struct RowKeys {
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const std::int64_t row = ids.row(i);
        keys[i] = static_cast<std::uint64_t>(row >= 0 ? row : ids.rows) << bits |
                  static_cast<std::uint64_t>(i);
    }
    Ids ids;
    std::uint64_t* keys;
    std::int64_t bits;
};
struct MergedKeys {
    // The new index of a key counts the keys before it in its run and smaller keys of the other.
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const std::uint64_t key = from[i];
        const std::int64_t run = i >> run_bits;
        const std::int64_t other = (run ^ 1) << run_bits;
        std::int64_t before = other < n ? other : n;
        std::int64_t end = other + (std::int64_t{1} << run_bits);
        for (end = end < n ? end : n; before < end;) {
            const std::int64_t middle = (before + end) / 2;
            if (from[middle] < key) before = middle + 1;
            else end = middle;
        }
        const std::int64_t smaller = before - (other < n ? other : n);
        to[(run >> 1 << (run_bits + 1)) + (i - (run << run_bits)) + smaller] = key;
    }
    const std::uint64_t* from;
    std::uint64_t* to;
    std::int64_t n;
    std::int64_t run_bits;
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
    each(queue, sums.n, RowKeys<Ids>{ids, keys, sums.bits});
    for (std::int64_t run = 0; std::int64_t{1} << run < sums.n; ++run) {
        each(queue, sums.n, MergedKeys{keys, others, sums.n, run});
        std::swap(keys, others);
    }
    sums.keys = keys;
    each(queue, sums.n * sums.size, sums);
}

}  // namespace catena::plugin::cuda
