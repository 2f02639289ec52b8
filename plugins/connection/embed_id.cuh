// A row of a table for each id, on CUDA.
#pragma once

#include "rows_by_id.cuh"

namespace catena::plugins {

// table[ids[i]] += rows[i]. Without `add` the table starts as zeros.
template <class I, class T>
void scatter_on_device(const auto& call, const T* rows, Tensor<T> table, bool add) {
    if (!add) call.zero(table);
    if (rows == nullptr) return;
    const auto x = call.template x<I>(0);
    sum_rows_on_device<T>(call.queue(),
                          id_list(x.data, table.dim(0), call.template attr<"ignore_label">()),
                          {.keys = nullptr,
                           .n = x.size(),
                           .n_rows = table.dim(0),
                           .bits = 0,
                           .size = table.dim(1),
                           .rows = rows,
                           .factors = nullptr,
                           .each = 1,
                           .table = table.data,
                           .add = add},
                          call.template scratch<std::uint64_t>());
}
// y[i] = table[ids[i]], or added to y.
template <class I, class T>
void gather_on_device(const auto& call, Tensor<const T> table, T* y, bool add) {
    const auto x = call.template x<I>(0);
    const Gathered<T> rule = {id_list(x.data, table.dim(0), call.template attr<"ignore_label">()),
                              table.data, y, table.dim(1), add};
    cuda::each(call.queue(), x.size() * table.dim(1), rule);
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::EmbedId> {
    using F = catena::plugins::EmbedId;

    static bool supports(const catena_call& call) {
        return attribute<F, "ignore_label">(call.attrs).size() <= catena::plugins::IdList::most;
    }
    template <class I, class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase == CATENA_PHASE_BACKWARD)
            plan.scratch_bytes = catena::plugins::row_sums_bytes(call.template x<I>(0).size());
    }
    template <class I, class T>
    static void forward(const auto& call) {
        catena::plugins::gather_on_device<I>(call, call.template x<T>(1),
                                             call.template y<T>(0).data, call.adds(0));
    }
    template <class I, class T>
    static void backward(const auto& call) {
        if (const auto gw = call.template gx<T>(1))
            catena::plugins::scatter_on_device<I, T>(call, call.template gy<T>(0).data, gw,
                                                     call.adds(1));
    }
};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::EmbedIdGradient> {
    using F = catena::plugins::EmbedIdGradient;

    static bool supports(const catena_call& call) {
        return attribute<F, "ignore_label">(call.attrs).size() <= catena::plugins::IdList::most;
    }
    template <class I, class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase == CATENA_PHASE_FORWARD)
            plan.scratch_bytes = catena::plugins::row_sums_bytes(call.template x<I>(0).size());
    }
    template <class I, class T>
    static void forward(const auto& call) {
        catena::plugins::scatter_on_device<I, T>(call, call.template x<T>(1).data,
                                                 call.template y<T>(0), call.adds(0));
    }
    template <class I, class T>
    static void backward(const auto& call) {
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(1);
        if (!gx) return;
        if (!gy) return call.adds(1) ? void() : call.zero(gx);
        catena::plugins::gather_on_device<I>(call, gy, gx.data, call.adds(1));
    }
};
