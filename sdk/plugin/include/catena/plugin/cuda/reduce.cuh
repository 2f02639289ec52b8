// Sums on CUDA of an operation's values, over any axes, computed on the fly. A block has lanes for
// kept and for summed units (see Fold). With few sums, the summed range is also split over blocks,
// whose partial sums in scratch memory are added in order. Terms are added in short runs, then
// pairwise, in an order that depends only on the shape.
#pragma once

#include "catena/plugin/cuda/elementwise.cuh"

namespace catena::plugin::cuda {

namespace detail {

template <class C>
struct SumOf {
    using type = std::conditional_t<std::is_integral_v<C>, std::uint64_t, C>;
};

}  // namespace detail

// What values of C are added up in: floats in their type, integers modulo 2^64.
template <class C>
using Accumulator = typename detail::SumOf<C>::type;

namespace detail {

// Where the tensor and its operands are, for sums of output `which` of an operation. The walk has a
// place only where operands may differ in shape.
struct NoWalk {};
template <class Op>
using SumWalk =
    std::conditional_t<Op::walks, Walk<std::uint64_t, n_in<Op> == 0 ? 1 : n_in<Op>>, NoWalk>;

template <std::size_t bytes>
struct BitsOf {
    using type = std::uint32_t;
};
template <>
struct BitsOf<8> {
    using type = std::uint64_t;
};
template <class Op, class Out>
struct Summed {
    Padded<Op> padded;
    Fold fold;
    const void* in[n_in<Op> + 1];
    Out* out;
    Accumulator<typename Op::Value>* partial;  // splits times n_kept; null with one split
    Sets sets;
    std::uint64_t wanted[n_out<Op>];  // all ones, or 0
    std::uint32_t whole;              // units of the fold are
    std::uint32_t add;
    [[no_unique_address]] SumWalk<Op> walk;
};

// The operands' elements of a unit; returns how many there are.
template <class Op, class Out>
__device__ __forceinline__ int load_terms(const Summed<Op, Out>& p, const Fold::Unit& kept,
                                          std::int64_t unit,
                                          typename Op::Value (&x)[n_in<Op> + 1][width<Op>]) {
    const Fold::Unit reduced = p.fold.locate_reduced(static_cast<std::uint64_t>(unit));
    const std::int64_t first = kept.at + reduced.at;
    const int count = p.fold.rows ? reduced.count : kept.count;
    std::int64_t at[n_in<Op>];
    if constexpr (Op::walks) {
        p.walk.locate(static_cast<std::uint64_t>(first), at);
    } else {
        CATENA_UNROLL
        for (int k = 0; k < n_in<Op>; ++k) at[k] = first;
    }
    load_inputs<typename Op::Value, width<Op>>(typename Op::In(),
                                               std::make_index_sequence<n_in<Op>>(), p.in, at,
                                               p.sets, p.whole != 0, count, x);
    return count;
}
template <class Op, class Out>
__device__ __forceinline__ void add_terms(const Summed<Op, Out>& p, int count,
                                          const typename Op::Value (&x)[n_in<Op> + 1][width<Op>],
                                          Accumulator<typename Op::Value> (&part)[width<Op>]) {
    using C = typename Op::Value;
    C y[n_out<Op> + 1][width<Op>];
    compute<Op, width<Op>>(p.padded.op, x, y);
    CATENA_UNROLL
    for (int j = 0; j < width<Op>; ++j) {
        typename BitsOf<sizeof(C)>::type bits = 0;
        CATENA_UNROLL  // the one that is wanted; an index would put y into memory
            for (int k = 0; k < n_out<Op>; ++k) bits |=
            std::bit_cast<decltype(bits)>(y[k][j]) & static_cast<decltype(bits)>(p.wanted[k]);
        if (j < count) part[j] += static_cast<Accumulator<C>>(std::bit_cast<C>(bits));
    }
}

template <class Op, class Out>
__global__ void __launch_bounds__(block) sum_kernel(const __grid_constant__ Summed<Op, Out> p) {
    using C = typename Op::Value;
    using Acc = Accumulator<C>;
    constexpr int w = width<Op>;
    constexpr int run = 16;  // units whose terms are added one after the other
    __shared__ Acc shared[w * block];
    const Fold& f = p.fold;
    const int t = static_cast<int>(threadIdx.x);
    const int kept_lane = f.rows ? t / f.reduced_lanes : t % f.kept_lanes;
    const int lane = f.rows ? t % f.reduced_lanes : t / f.kept_lanes;
    const std::int64_t kept_unit = static_cast<std::int64_t>(blockIdx.x) * f.kept_lanes + kept_lane;
    const bool there = kept_unit < f.kept_units;
    const Fold::Unit kept = f.locate_kept(static_cast<std::uint64_t>(there ? kept_unit : 0));
    std::int64_t unit = static_cast<std::int64_t>(blockIdx.y) * f.per_split;
    const std::int64_t last = !there                                 ? 0
                              : unit + f.per_split < f.reduced_units ? unit + f.per_split
                                                                     : f.reduced_units;
    unit += lane;

    // Loads of several units are on their way at the same time, as far as registers go.
    constexpr int batch = Op::walks ? 1 : std::clamp(64 / (w * static_cast<int>(sizeof(C))), 1, 4);
    Acc total[w] = {};
    while (unit < last) {
        Acc part[w] = {};
        for (int i = 0; i < run && unit < last;) {
            if (batch > 1 && unit + (batch - 1) * f.reduced_lanes < last) {
                C x[batch][n_in<Op> + 1][w];
                int count[batch];
                CATENA_UNROLL
                for (int b = 0; b < batch; ++b)
                    count[b] = load_terms(p, kept, unit + b * f.reduced_lanes, x[b]);
                CATENA_UNROLL
                for (int b = 0; b < batch; ++b) add_terms(p, count[b], x[b], part);
                unit += batch * f.reduced_lanes;
                i += batch;
            } else {
                C x[n_in<Op> + 1][w];
                const int count = load_terms(p, kept, unit, x);
                add_terms(p, count, x, part);
                unit += f.reduced_lanes;
                ++i;
            }
        }
        CATENA_UNROLL
        for (int j = 0; j < w; ++j) total[j] += part[j];
    }

    // The terms of a pack are one sum in rows, sums side by side in columns.
    const int sums = f.rows ? 1 : w;
    if (f.rows) {
        CATENA_UNROLL
        for (int j = 1; j < w; ++j) total[0] += total[j];
    }
    CATENA_UNROLL
    for (int j = 0; j < w; ++j)
        if (j < sums) shared[j * block + t] = total[j];
    const int step = f.rows ? 1 : f.kept_lanes;
    for (int half = f.reduced_lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane >= half) continue;
        CATENA_UNROLL
        for (int j = 0; j < w; ++j)
            if (j < sums) shared[j * block + t] += shared[j * block + t + half * step];
    }
    if (lane != 0 || !there) return;
    const int count = f.rows ? 1 : kept.count;
    for (int j = 0; j < count; ++j) {
        const Acc sum = shared[j * block + t];
        if (p.partial != nullptr) {
            p.partial[blockIdx.y * f.n_kept + kept.out + j] = sum;
        } else {
            Out& y = p.out[kept.out + j];
            const auto value = static_cast<Compute<Out>>(sum);
            y = store_as<Out>(p.add != 0 ? load_as<Compute<Out>>(y) + value : value);
        }
    }
}

template <class Op, class Out>
void launch_sum(const Queue& queue, Summed<Op, Out>& p) {
    p.whole = p.fold.inner % width<Op> == 0 ? 1 : 0;
    p.sets.aligned_in = aligned_set<width<Op>>(typename Op::In(), p.in);
    queue.launch(&sum_kernel<Op, Out>,
                 dim3(static_cast<unsigned>(p.fold.blocks), static_cast<unsigned>(p.fold.splits)),
                 block, p);
}

// The shapes of operands, of those that are not there the whole's; and who walks along which axis.
template <class Op>
struct Shapes {
    Shapes(Shape shape, const Operand* in) {
        for (int k = 0; k < n_in<Op>; ++k) own[k] = in[k].data == nullptr ? shape : in[k].shape;
        for (std::size_t d = 0; d < shape.size(); ++d)
            steps[d] = Walk<std::uint64_t, n_in<Op>>::steps(shape, d, own);
    }
    Shape own[n_in<Op>];
    std::uint64_t steps[CATENA_MAX_NDIM];
};
template <class Op, class Summed>
Fold fold_of(Shape shape, const Operand* in, const Summed& summed) {
    if constexpr (Op::walks) return Fold(shape, summed, width<Op>, Shapes<Op>(shape, in).steps);
    else return Fold(shape, summed, width<Op>);
}

}  // namespace detail

// Bytes of scratch that sum() takes for these operands; pointers count as there or not, no more.
template <class Op, class Summed>
std::uint64_t sum_scratch(Shape shape, const Operand* in, const Summed& summed) {
    if (size_of(shape) == 0) return 0;
    const Fold fold = detail::fold_of<Op>(shape, in, summed);
    return fold.splits == 1 ? 0
                            : static_cast<std::uint64_t>(fold.splits * fold.n_kept) *
                                  sizeof(Accumulator<typename Op::Value>);
}

// out = sums of output `which` of op(operands) over the axes that summed(d) names, or added to out.
// Operands broadcast to shape; out is dense. scratch has the bytes that sum_scratch() says.
template <class Op, class Out, class Summed>
void sum(const Queue& queue, const Op& op, Shape shape, const Operand* in, int which,
         const Summed& summed, Out* out, bool add, void* scratch) {
    using namespace detail;
    if (size_of(shape) == 0) {
        std::int64_t n = 1;
        for (std::size_t d = 0; d < shape.size(); ++d)
            if (!summed(d)) n *= shape[d];
        if (!add) queue.zero(out, static_cast<std::size_t>(n) * sizeof(Out));
        return;
    }
    using Acc = Accumulator<typename Op::Value>;
    detail::Summed<Op, Out> p;
    clear(p, op);
    p.fold = fold_of<Op>(shape, in, summed);
    p.out = out;
    p.add = add ? 1 : 0;
    p.wanted[which] = ~p.wanted[which];
    if (p.fold.splits > 1) p.partial = static_cast<Acc*>(scratch);
    for (int k = 0; k < n_in<Op>; ++k) p.in[k] = in[k].data;
    if constexpr (Op::walks) {
        if (!p.walk.build(shape, Shapes<Op>(shape, in).own, width<Op>)) fail_walk<Op>(queue);
        for (int k = 0; k < n_in<Op>; ++k)
            if (p.walk.single(k)) p.sets.single |= std::uint64_t{1} << k;
    }
    launch_sum(queue, p);
    if (p.partial == nullptr) return;
    using Second = Copy<Acc, Acc>;
    const std::int64_t parts[] = {p.fold.splits, p.fold.n_kept};
    detail::Summed<Second, Out> q;
    clear(q, Second());
    q.fold = Fold(
        Shape(parts), [](std::size_t d) { return d == 0; }, width<Second>, nullptr, false);
    q.in[0] = p.partial;
    q.out = out;
    q.add = add ? 1 : 0;
    q.wanted[0] = ~q.wanted[0];
    launch_sum(queue, q);
}

// Axes along which a tensor of shape `to` was repeated to `from`.
struct Repeats {
    bool operator()(std::size_t d) const {
        const std::size_t more = from.size() - to.size();
        return d < more || (to[d - more] == 1 && from[d] != 1);
    }
    Shape from, to;
};

}  // namespace catena::plugin::cuda
