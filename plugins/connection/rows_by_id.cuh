// Rows by id, on CUDA: gathers rows of a table, and lists the rows for sum_rows_on_device(). The
// host does not wait to learn whether an id is out of range: the row gathered for such an id is
// NaN, and a row to be added is skipped.
#pragma once

#include <limits>

#include <catena/plugin/cuda/add_rows.cuh>

#include "embed_id.hpp"

namespace catena::plugins {

using namespace catena::plugin;

// Ids, of 4 or 8 bytes each, and the ids to ignore.
struct IdList {
    static constexpr int most = 64;  // ignored ids; RowsById::supports() rejects more
    static constexpr std::int64_t ignored = -1;
    static constexpr std::int64_t wrong = -2;

    // Returns the row of the i-th id, or `ignored` or `wrong`.
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

// Sets row i of y to row ids[i] of the table, or adds it; rows have `size` elements.
template <class T>
struct Gathered {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const std::int64_t row = ids.row(i / size);
        C v = row == IdList::wrong ? std::numeric_limits<C>::quiet_NaN() : C(0);
        if (row >= 0) v = cuda::load_as<C>(table[row * size + i % size]);
        cuda::store(y[i], add != 0, v);
    }
    IdList ids;
    const T* table;
    T* y;
    std::int64_t size, add;
};

}  // namespace catena::plugins
