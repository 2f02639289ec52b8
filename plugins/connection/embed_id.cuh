// Embedding: a row of a table for each id, on CUDA. The host does not wait to learn whether an id is
// out of range: the row gathered for such an id is NaN, and a row to be added is skipped.
#pragma once

#include <limits>

#include <catena/plugin/cuda/add_rows.cuh>

#include "embed_id.hpp"

namespace catena::plugins {

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
IdList id_list(const auto& call, Tensor<const I> ids, std::int64_t rows) {
    const Ints ignored = call.template attr<"ignore_label">();
    IdList list = {.ids = ids.data,
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

template <class F, class I, class T>
void scatter_rows(const cuda::Call<F>& call, Tensor<const I> x, const T* rows, Tensor<T> table,
                  bool add) {
    if (!add) call.zero(table);
    cuda::sum_rows_on_device<T>(call.queue(), id_list(call, x, table.dim(0)),
                                {.n = x.size(),
                                 .n_rows = table.dim(0),
                                 .size = table.dim(1),
                                 .rows = rows,
                                 .table = table.data,
                                 .add = add},
                                call.template scratch<std::uint64_t>());
}
template <class F, class I, class T>
void gather_rows(const cuda::Call<F>& call, Tensor<const I> x, Tensor<const T> table, T* y,
                 bool add) {
    const Gathered<T> rule = {id_list(call, x, table.dim(0)), table.data, y, table.dim(1), add};
    cuda::each(call.queue(), x.size() * table.dim(1), rule);
}

// The phase that adds up rows needs scratch memory.
template <class F, int phase>
struct RowsById : F {
    static bool supports(const catena_call& call) {
        return attribute<F, "ignore_label">(call.attrs).size() <= IdList::most;
    }
    template <class I, class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase == phase)
            plan.scratch_bytes = cuda::row_sums_bytes(call.template x<I>(0).size());
    }
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::EmbedId>
    : catena::plugins::RowsById<catena::plugins::EmbedId, CATENA_PHASE_BACKWARD> {};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::EmbedIdGradient>
    : catena::plugins::RowsById<catena::plugins::EmbedIdGradient, CATENA_PHASE_FORWARD> {};
