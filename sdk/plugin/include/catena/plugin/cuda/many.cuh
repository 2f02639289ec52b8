// Updates many tensors in few launches: an optimizer's step over all parameters. Each block finds
// its tensor, and its part of this tensor.
#pragma once

#include "catena/abi/ext/draft/many.h"
#include "catena/plugin/cuda/formula.cuh"

namespace catena::plugin::cuda {

namespace detail {

template <int ports>
struct Tensors {
    void* data[ports];
    std::int64_t n;         // elements of each
    std::uint32_t first;    // first block of the tensor
    std::uint32_t aligned;  // whether all ports are aligned
};
template <class Op>
struct Many : Packed<Op> {
    static constexpr int most = static_cast<int>((4000 - sizeof(Op)) / sizeof(Tensors<n_in<Op>>));

    const void* constants;  // in device memory; null: those of the operation
    Tensors<n_in<Op>> item[most];
    Sets sets;
    std::uint64_t written;  // mutated ports, as bits
    std::int32_t n;
    std::int32_t reserved;
};
inline constexpr std::int64_t many_units = 4 * block;  // packs of each block

template <class Op>
__global__ void __launch_bounds__(block, 1) many_kernel(const __grid_constant__ Many<Op> p) {
    constexpr int ports = n_in<Op>;
    int k = 0;
    for (int last = p.n; last - k > 1;) {
        const int middle = (k + last) / 2;
        if (p.item[middle].first <= blockIdx.x) k = middle;
        else last = middle;
    }
    const auto& item = p.item[k];
    Op op = p.op();
    if (p.constants != nullptr)
        op.constants = *static_cast<const decltype(op.constants)*>(p.constants);
    const void* in[ports + 1] = {};
    void* out[ports + 1] = {};
    CATENA_UNROLL
    for (int i = 0; i < ports; ++i) {
        in[i] = item.data[i];
        out[i] = in_set(p.written, i) ? item.data[i] : nullptr;
    }
    const std::int64_t begin = (blockIdx.x - item.first) * many_units;
    const std::int64_t units = begin + many_units;
    const std::int64_t left = item.n < units * width<Op> ? item.n : units * width<Op>;
    const std::int64_t all = item.aligned != 0 ? item.n / width<Op> : begin;
    const std::int64_t packs = all < units ? all : units;
    apply_flat(op, in, out, p.sets, begin + threadIdx.x, packs, packs * width<Op> + threadIdx.x,
               left, block);
}

// update_many() for the inputs X.
template <class F, class... T, std::size_t... X>
void update_many(const Queue& queue, std::span<const catena_call* const> calls,
                 const void* constants, std::index_sequence<X...>) {
    using Op = UpdateOp<F, std::index_sequence<X...>, T...>;
    constexpr auto sizes = sizes_of(typename Op::In());
    constexpr std::int64_t chunk = many_units * width<Op>;
    Many<Op> p;
    set_operation(p, Op{constants_of<F, typename Op::Value>(calls[0]->attrs)});
    p.constants = constants;
    p.sets.single = single_ports<F>();
    p.written = mutated_ports<F>();
    std::uint32_t blocks = 0;
    for (std::size_t i = 0; i < calls.size(); ++i) {
        auto& item = p.item[p.n];
        item.n = size_of(*calls[i]->x[0]);
        item.first = blocks;
        item.aligned = 1;
        for (int k = 0; k < n_in<Op>; ++k) {
            item.data[k] = data_of<char>(*calls[i]->x[k]);
            if (!in_set(p.sets.single, k) && !is_aligned(item.data[k], width<Op>, sizes[k]))
                item.aligned = 0;
        }
        blocks += static_cast<std::uint32_t>((item.n + chunk - 1) / chunk);
        if (item.n > 0) ++p.n;
        if (p.n < p.most && i + 1 < calls.size()) continue;
        if (blocks > 0) queue.launch(&many_kernel<Op>, dim3(blocks), block, p);
        p.n = 0;
        blocks = 0;
    }
}

}  // namespace detail

// Does what update_formula() does, for n calls with the same attributes on one stream. constants:
// in device memory; null: computed from the attributes.
template <class F, class... T>
void update_many(const Queue& queue, const catena_call* const* calls, std::uint32_t n,
                 const void* constants) {
    const auto inputs = [&](std::uint32_t i) {
        std::size_t number = 0;
        with_inputs<F>(*calls[i], [&](auto x) { number = x.size(); });
        return number;
    };
    for (std::uint32_t begin = 0, end = 0; begin < n; begin = end) {
        while (end < n && inputs(end) == inputs(begin)) ++end;
        with_inputs<F>(*calls[begin], [&](auto x) {
            detail::update_many<F, T...>(queue, std::span(calls + begin, end - begin), constants,
                                         x);
        });
    }
}

}  // namespace catena::plugin::cuda
