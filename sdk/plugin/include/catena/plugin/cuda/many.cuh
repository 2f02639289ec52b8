// Updates of many tensors in few launches: an optimizer's step over all parameters. Blocks find the
// tensor that they work on, and their part of it.
#pragma once

#include "catena/abi/ext/draft/many.h"
#include "catena/plugin/cuda/formula.cuh"

namespace catena::plugin::cuda {

namespace detail {

template <int ports>
struct Tensors {
    void* data[ports];
    std::int64_t n;         // elements of each
    std::uint32_t first;    // block
    std::uint32_t aligned;  // a bit for each port
};
template <class Op>
struct Many {
    static constexpr int ports = n_in<Op>;
    static constexpr int most =
        (4000 - static_cast<int>(sizeof(Padded<Op>))) / static_cast<int>(sizeof(Tensors<ports>));

    Padded<Op> padded;
    const decltype(Op::constants)* constants;  // in memory; null: the operation's own
    Tensors<ports> item[most];
    std::int32_t n;
    std::int32_t reserved;
};
inline constexpr std::int64_t many_units = 4 * block;  // packs of each block

// written, single: sets of ports.
template <class Op, std::uint64_t written, std::uint64_t single>
__global__ void __launch_bounds__(block) many_kernel(const __grid_constant__ Many<Op> p) {
    using C = typename Op::Value;
    constexpr int w = width<Op>;
    constexpr int ports = n_in<Op>;
    int k = 0;
    for (int last = p.n; last - k > 1;) {
        const int middle = (k + last) / 2;
        if (p.item[middle].first <= blockIdx.x) k = middle;
        else last = middle;
    }
    const auto& item = p.item[k];
    Op op = p.padded.op;
    if (p.constants != nullptr) op.constants = *p.constants;
    const void* in[ports + 1] = {};
    void* out[ports + 1] = {};
    CATENA_UNROLL
    for (int i = 0; i < ports; ++i) {
        in[i] = item.data[i];
        out[i] = in_set(written, i) ? item.data[i] : nullptr;
    }
    const Sets sets = {item.aligned, item.aligned, single, 0};
    const std::int64_t begin = (blockIdx.x - item.first) * many_units;
    for (std::int64_t u = begin + threadIdx.x; u < begin + many_units; u += block) {
        const std::int64_t first = u * w;
        if (first >= item.n) return;
        const bool whole = first + w <= item.n;
        const int count = whole ? w : static_cast<int>(item.n - first);
        std::int64_t at[ports + 1];
        CATENA_UNROLL
        for (int i = 0; i < ports; ++i) at[i] = in_set(single, i) ? 0 : first;
        C x[ports + 1][w];
        C y[ports + 1][w];
        load_inputs<C, w>(typename Op::In(), std::make_index_sequence<ports>(), in, at, sets, whole,
                          count, x);
        compute<Op, w>(op, x, y);
        store_outputs<C, w>(typename Op::Out(), std::make_index_sequence<ports>(), out, first, sets,
                            whole, count, y);
    }
}

}  // namespace detail

template <class F, class... T>
using UpdateOf = detail::UpdateOp<F, std::make_index_sequence<n_inputs<F>>, T...>;

// What update_formula() does, for each of n calls of the same attributes on one stream. constants:
// in memory of the device, or null.
template <class F, class... T>
void update_many(const Queue& queue, const catena_call* const* calls, std::uint32_t n,
                 const void* constants) {
    constexpr std::size_t ports = n_inputs<F>;
    using Op = UpdateOf<F, T...>;
    constexpr std::uint64_t written = detail::mutated_ports<F>();
    constexpr std::uint64_t single = detail::single_ports<F>();
    constexpr std::int64_t chunk = detail::many_units * detail::width<Op>;
    detail::Many<Op> p;
    detail::clear(p, Op{detail::constants_of<F, typename Op::Value>(calls[0]->attrs)});
    p.constants = static_cast<const decltype(Op::constants)*>(constants);
    std::uint32_t blocks = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
        auto& item = p.item[p.n];
        item.n = size_of(*calls[i]->x[0]);
        item.first = blocks;
        for (std::size_t k = 0; k < ports; ++k) item.data[k] = data_of<char>(*calls[i]->x[k]);
        item.aligned = static_cast<std::uint32_t>(
            detail::aligned_set<detail::width<Op>>(typename Op::In(), item.data));
        blocks += static_cast<std::uint32_t>((item.n + chunk - 1) / chunk);
        if (item.n > 0) ++p.n;
        if (p.n < detail::Many<Op>::most && i + 1 < n) continue;
        if (blocks > 0)
            queue.launch(&detail::many_kernel<Op, written, single>, dim3(blocks), block, p);
        p.n = 0;
        blocks = 0;
    }
}

}  // namespace catena::plugin::cuda
