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
    std::uint32_t aligned;  // all ports are
};
template <int ports, std::size_t bytes>
struct Many {
    static constexpr int most = static_cast<int>((4000 - bytes) / sizeof(Tensors<ports>));

    alignas(8) unsigned char operation[bytes];
    const void* constants;  // in memory; null: the operation's own
    Tensors<ports> item[most];
    Sets sets;
    std::uint64_t written;  // ports
    std::int32_t n;
    std::int32_t reserved;
};
template <class Op>
using ManyOf = Many<n_in<Op>, op_bytes<Op>>;
inline constexpr std::int64_t many_units = 4 * block;  // packs of each block

template <class Op>
__global__ void __launch_bounds__(block) many_kernel(const __grid_constant__ ManyOf<Op> p) {
    constexpr int ports = n_in<Op>;
    int k = 0;
    for (int last = p.n; last - k > 1;) {
        const int middle = (k + last) / 2;
        if (p.item[middle].first <= blockIdx.x) k = middle;
        else last = middle;
    }
    const auto& item = p.item[k];
    Op op = *reinterpret_cast<const Op*>(p.operation);
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

struct ManyKernel {
    std::uint64_t written, single;
    std::uint32_t op_size;
    std::int32_t width;
    std::uint8_t size[CATENA_MAX_PORTS];
};
template <int ports, std::size_t bytes>
[[gnu::noinline]] void launch_many(const Queue& queue, void (*kernel)(Many<ports, bytes>),
                                   const ManyKernel& about, const void* op,
                                   const catena_call* const* calls, std::uint32_t n,
                                   const void* constants) {
    Many<ports, bytes> p;
    set_operation(p, op, about.op_size);
    p.constants = constants;
    p.sets.single = about.single;
    p.written = about.written;
    const std::int64_t chunk = many_units * about.width;
    std::uint32_t blocks = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
        auto& item = p.item[p.n];
        item.n = size_of(*calls[i]->x[0]);
        item.first = blocks;
        item.aligned = 1;
        for (int k = 0; k < ports; ++k) {
            item.data[k] = data_of<char>(*calls[i]->x[k]);
            if (!in_set(about.single, k) && !is_aligned(item.data[k], about.width, about.size[k]))
                item.aligned = 0;
        }
        blocks += static_cast<std::uint32_t>((item.n + chunk - 1) / chunk);
        if (item.n > 0) ++p.n;
        if (p.n < p.most && i + 1 < n) continue;
        if (blocks > 0) queue.launch(kernel, dim3(blocks), block, p);
        p.n = 0;
        blocks = 0;
    }
}

}  // namespace detail

// What update_formula() does, for each of n calls of the same attributes on one stream. constants: in
// memory of the device, or null.
template <class F, class... T>
void update_many(const Queue& queue, const catena_call* const* calls, std::uint32_t n,
                 const void* constants) {
    using Op = UpdateOf<F, T...>;
    constexpr auto about = [] {
        detail::ManyKernel k = {detail::mutated_ports<F>(),
                                detail::single_ports<F>(),
                                sizeof(Op),
                                detail::width<Op>,
                                {}};
        detail::set_sizes(typename Op::In(), k.size);
        return k;
    }();
    const Op op{detail::constants_of<F, typename Op::Value>(calls[0]->attrs)};
    detail::launch_many(queue, &detail::many_kernel<Op>, about, &op, calls, n, constants);
}

}  // namespace catena::plugin::cuda
