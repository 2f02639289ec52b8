// Embedding: a row of a table for each id, on CUDA.
#pragma once

#include "rows_by_id.cuh"

namespace catena::plugins {

template <class F, class I, class T>
void scatter_rows(const cuda::Call<F>& call, Tensor<const I> x, const T* rows, Tensor<T> table,
                  bool add) {
    if (!add) call.zero(table);
    cuda::sum_rows_on_device<T>(call.queue(),
                                id_list(x.data, table.dim(0), call.template attr<"ignore_label">()),
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
    const Gathered<T> rule = {id_list(x.data, table.dim(0), call.template attr<"ignore_label">()),
                              table.data, y, table.dim(1), add};
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
