// A row of a table for each id, on CUDA.
#pragma once

#include "embed_id.hpp"
#include "rows_by_id.cuh"

namespace catena::plugins {

// Bytes of scratch for the rows of a call's ids, added up into a table.
template <class T>
std::uint64_t plan_rows(const auto& call, Shape table) {
    Room room;
    RowSumPlan<T>(call.queue().function, size_of(*call.raw().x[0]), table[0], table[1], room);
    return room.bytes();
}
// table[ids[i]] += rows[i]. Without `add` the table starts as zeros.
template <class I, class T>
void scatter_on_device(const auto& call, const T* rows, Tensor<T> table, bool add) {
    if (!add) call.zero(table);
    if (rows == nullptr) return;
    const auto x = call.template x<I>(0);
    Room room(call.template scratch<void>());
    const RowSumPlan<T> plan(call.queue().function, x.size(), table.dim(0), table.dim(1), room);
    const IdList ids = id_list(x.data, table.dim(0), call.template attr<"ignore_label">());
    sum_rows_on_device<T>(call.queue(), plan, ids, rows, nullptr, 1, table.data, add);
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
        const auto gw =
            call.raw().phase == CATENA_PHASE_BACKWARD ? call.template gx<T>(1) : Tensor<T>{};
        if (gw) plan.scratch_bytes = catena::plugins::plan_rows<T>(call, gw.shape);
    }
    template <class I, class T>
    static void forward(const auto& call) {
        const auto x = call.template x<I>(0);
        const auto w = call.template x<T>(1);
        catena::plugins::gather_on_device(
            call.queue(),
            catena::plugins::id_list(x.data, w.dim(0), call.template attr<"ignore_label">()),
            x.size(), w.data, w.dim(1), call.template y<T>(0).data, call.adds(0));
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
            plan.scratch_bytes = catena::plugins::plan_rows<T>(call, call.template y<T>(0).shape);
    }
    template <class I, class T>
    static void forward(const auto& call) {
        catena::plugins::scatter_on_device<I, T>(call, call.template x<T>(1).data,
                                                 call.template y<T>(0), call.adds(0));
    }
    template <class I, class T>
    static void backward(const auto& call) {
        const auto x = call.template x<I>(0);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(1);
        if (!gx) return;
        if (!gy) return call.adds(1) ? void() : call.zero(gx);
        catena::plugins::gather_on_device(
            call.queue(),
            catena::plugins::id_list(x.data, gy.dim(0), call.template attr<"ignore_label">()),
            x.size(), gy.data, gy.dim(1), gx.data, call.adds(1));
    }
};
