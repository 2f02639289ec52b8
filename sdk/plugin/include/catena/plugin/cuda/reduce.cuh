// Sums on CUDA of an operation's values, over any axes, computed on the fly. A block has lanes for
// kept and for summed units (see Fold). With few sums, the summed range is also split over blocks,
// whose partial sums in scratch memory are added in order. Terms are added in short runs, then
// pairwise, in an order that depends only on the shape.
#pragma once

#include "catena/plugin/cuda/elementwise.cuh"

namespace catena::plugin::cuda {

// What values of C are added up in: floats in their type, integers modulo 2^64.
template <class C>
using Accumulator = std::conditional_t<std::is_integral_v<C>, std::uint64_t, C>;

// Axes along which a tensor of shape `to` was repeated to `from`.
struct Repeats {
    bool operator()(std::size_t d) const {
        const std::size_t more = from.size() - to.size();
        return d < more || (to[d - more] == 1 && from[d] != 1);
    }
    Shape from, to;
};

namespace detail {

// Where operands are, for sums of an operation. The walk has a place only where they may differ in
// shape.
struct NoWalk {};
template <int inputs, bool walks>
using SumWalk = std::conditional_t<walks, Walk<std::uint64_t, inputs>, NoWalk>;

template <int inputs, int outputs, std::size_t bytes, bool walks>
struct Summed : Ports<inputs, outputs, bytes> {
    Fold fold;
    void* partial;                  // splits times n_kept sums; null with one split
    std::uint64_t wanted[outputs];  // all ones, or 0
    std::uint32_t whole;            // units are aligned packs
    std::uint32_t add;
    [[no_unique_address]] SumWalk<inputs, walks> walk;
};
template <class Op>
using SummedOf = Summed<n_in<Op>, n_out<Op>, op_bytes<Op>, Op::walks>;

// The operands' elements of a unit; returns how many there are.
template <class Op>
__device__ __forceinline__ int load_terms(const SummedOf<Op>& p, const Fold::Unit& kept,
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
    load_inputs<width<Op>>(typename Op::In(), std::make_index_sequence<n_in<Op>>(), p.in, at,
                           p.sets, x, p.whole != 0, count);
    return count;
}
template <class Op>
__device__ __forceinline__ void add_terms(const SummedOf<Op>& p, int count,
                                          const typename Op::Value (&x)[n_in<Op> + 1][width<Op>],
                                          Accumulator<typename Op::Value> (&part)[width<Op>]) {
    using C = typename Op::Value;
    using Bits = std::conditional_t<sizeof(C) == 8, std::uint64_t, std::uint32_t>;
    C y[n_out<Op> + 1][width<Op>];
    compute<Op, width<Op>>(p.template op<Op>(), x, y);
    CATENA_UNROLL
    for (int j = 0; j < width<Op>; ++j) {
        Bits bits = 0;
        CATENA_UNROLL  // the one that is wanted; an index would put y into memory
            for (int k = 0; k < n_out<Op>; ++k) bits |=
            std::bit_cast<Bits>(y[k][j]) & static_cast<Bits>(p.wanted[k]);
        if (j < count) part[j] += static_cast<Accumulator<C>>(std::bit_cast<C>(bits));
    }
}
// Stores a sum, or adds it to what is there.
template <class Out, class Acc>
__device__ __forceinline__ void store_sum(Out& out, Acc sum, bool add) {
    const auto value = static_cast<Compute<Out>>(sum);
    out = add ? stored_sum(out, value) : store_as<Out>(value);
}

template <class Op, class Out>
__global__ void __launch_bounds__(block) sum_kernel(const __grid_constant__ SummedOf<Op> p) {
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
    CATENA_ROLL
    while (unit < last) {
        Acc part[w] = {};
        CATENA_ROLL
        for (int i = 0; i < run && unit < last; i += batch, unit += batch * f.reduced_lanes) {
            C x[batch][n_in<Op> + 1][w];
            int count[batch];
            CATENA_UNROLL
            for (int b = 0; b < batch; ++b) {
                const std::int64_t own = unit + b * f.reduced_lanes;
                count[b] = own < last ? load_terms<Op>(p, kept, own, x[b]) : 0;
            }
            CATENA_UNROLL
            for (int b = 0; b < batch; ++b)
                if (count[b] > 0) add_terms<Op>(p, count[b], x[b], part);
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
    CATENA_ROLL
    for (int half = f.reduced_lanes / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane >= half) continue;
        CATENA_ROLL
        for (int j = 0; j < sums; ++j) shared[j * block + t] += shared[j * block + t + half * step];
    }
    if (lane != 0 || !there) return;
    const int count = f.rows ? 1 : kept.count;
    CATENA_ROLL
    for (int j = 0; j < count; ++j) {
        const Acc sum = shared[j * block + t];
        if (p.partial != nullptr)
            static_cast<Acc*>(p.partial)[blockIdx.y * f.n_kept + kept.out + j] = sum;
        else store_sum(static_cast<Out*>(p.out[0])[kept.out + j], sum, p.add != 0);
    }
}
// Adds up the parts of each sum. A block has `across` sums side by side, and lanes for each.
template <class Acc, class Out>
__global__ void __launch_bounds__(block)
    join_kernel(const Acc* partial, std::int64_t n, std::int64_t splits, int across, Out* out,
                bool add) {
    __shared__ Acc shared[block];
    const int t = static_cast<int>(threadIdx.x);
    const int lane = t / across;
    const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * across + t % across;
    Acc sum = 0;
    for (std::int64_t s = lane; i < n && s < splits; s += block / across) sum += partial[s * n + i];
    shared[t] = sum;
    CATENA_ROLL
    for (int half = block / across / 2; half > 0; half /= 2) {
        __syncthreads();
        if (lane < half) shared[t] += shared[t + half * across];
    }
    if (lane == 0 && i < n) store_sum(out[i], shared[t], add);
}

template <int inputs, int outputs, std::size_t bytes, bool walks>
struct SumKernels {
    void (*sum)(Summed<inputs, outputs, bytes, walks>);
    void (*join)(const Queue& queue, const void* partial, std::int64_t n, std::int64_t splits,
                 const Result& out);
    std::uint32_t op_size;
    std::int32_t width;
    std::uint32_t sum_size, out_size;
    std::uint8_t in[inputs];
};
template <class Acc, class Out>
void launch_join(const Queue& queue, const void* partial, std::int64_t n, std::int64_t splits,
                 const Result& out) {
    const auto across =
        static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>(n, 32))));
    queue.launch(&join_kernel<Acc, Out>, dim3(static_cast<unsigned>((n + across - 1) / across)),
                 block, static_cast<const Acc*>(partial), n, splits, across,
                 static_cast<Out*>(out.data), out.add);
}
template <class Op, class Out>
constexpr auto make_sum_kernels() {
    using Acc = Accumulator<typename Op::Value>;
    SumKernels<n_in<Op>, n_out<Op>, op_bytes<Op>, Op::walks> k = {};
    k.sum = &sum_kernel<Op, Out>;
    k.join = &launch_join<Acc, Out>;
    k.op_size = sizeof(Op);
    k.width = width<Op>;
    k.sum_size = sizeof(Acc);
    k.out_size = sizeof(Out);
    set_sizes(typename Op::In(), k.in);
    return k;
}
template <class Op, class Out>
inline constexpr auto sum_kernels = make_sum_kernels<Op, Out>();

// A set of axes, as bits.
template <class Summed>
std::uint32_t axes_where(Shape shape, const Summed& summed) {
    std::uint32_t set = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) set |= std::uint32_t{summed(d)} << d;
    return set;
}
// The shapes of n operands; those that are not there have the whole's.
inline void shapes_of(Shape shape, const Operand* in, int n, Shape* own) {
    for (int k = 0; k < n; ++k) own[k] = in[k].data == nullptr ? shape : in[k].shape;
}
template <int inputs, bool walks>
[[gnu::noinline]] Fold fold_of(Shape shape, const Operand* in, std::uint32_t summed, int width) {
    const auto is_summed = [=](std::size_t d) { return (summed >> d & 1) != 0; };
    std::uint64_t steps[CATENA_MAX_NDIM];
    if constexpr (walks) {
        Shape own[inputs];
        shapes_of(shape, in, inputs, own);
        for (std::size_t d = 0; d < shape.size(); ++d)
            steps[d] = Walk<std::uint64_t, inputs>::steps(shape, d, own);
    }
    return Fold(shape, is_summed, width, walks ? steps : nullptr);
}
inline std::uint64_t partial_bytes(const Fold& fold, std::size_t sum_size) {
    if (fold.splits == 1) return 0;
    return static_cast<std::uint64_t>(fold.splits * fold.n_kept) * sum_size;
}

template <int inputs, int outputs, std::size_t bytes, bool walks>
[[gnu::noinline]] void sum_ports(const Queue& queue,
                                 const SumKernels<inputs, outputs, bytes, walks>& kernels,
                                 const void* op, Shape shape, const Operand* in, int which,
                                 std::uint32_t summed, const Result& out, void* scratch) {
    if (size_of(shape) == 0) {
        std::size_t n = kernels.out_size;
        for (std::size_t d = 0; d < shape.size(); ++d)
            if ((summed >> d & 1) == 0) n *= static_cast<std::size_t>(shape[d]);
        if (!out.add) queue.zero(out.data, n);
        return;
    }
    Summed<inputs, outputs, bytes, walks> p;
    set_operation(p, op, kernels.op_size);
    p.fold = fold_of<inputs, walks>(shape, in, summed, kernels.width);
    p.out[0] = out.data;
    p.add = out.add;
    p.wanted[which] = ~std::uint64_t{0};
    if (p.fold.splits > 1) p.partial = scratch;
    if constexpr (walks) {
        Shape own[inputs];
        shapes_of(shape, in, inputs, own);
        if (!p.walk.build(shape, own, kernels.width)) fail_walk(queue, p.walk.most);
        for (int k = 0; k < inputs; ++k) p.sets.single |= bit(p.walk.single(k), k);
    }
    p.whole = p.fold.inner % kernels.width == 0;
    for (int k = 0; k < inputs; ++k) {
        p.in[k] = in[k].data;
        if (!in_set(p.sets.single, k) && !is_aligned(p.in[k], kernels.width, kernels.in[k]))
            p.whole = 0;
    }
    queue.launch(kernels.sum,
                 dim3(static_cast<unsigned>(p.fold.blocks), static_cast<unsigned>(p.fold.splits)),
                 block, p);
    if (p.partial != nullptr) kernels.join(queue, p.partial, p.fold.n_kept, p.fold.splits, out);
}

}  // namespace detail

// Bytes of scratch that sum() takes for these operands; pointers count as there or not, no more.
template <class Op, class Summed>
std::uint64_t sum_scratch(Shape shape, const Operand* in, const Summed& summed) {
    using namespace detail;
    if (size_of(shape) == 0) return 0;
    return partial_bytes(
        fold_of<n_in<Op>, Op::walks>(shape, in, axes_where(shape, summed), width<Op>),
        sizeof(Accumulator<typename Op::Value>));
}

// out = sums of output `which` of op(operands) over the axes that summed(d) names, or added to out.
// Operands broadcast to shape; out is dense. scratch has the bytes that sum_scratch() says.
template <class Op, class Out, class Summed>
void sum(const Queue& queue, const Op& op, Shape shape, const Operand* in, int which,
         const Summed& summed, Out* out, bool add, void* scratch) {
    using namespace detail;
    sum_ports(queue, sum_kernels<Op, Out>, &op, shape, in, which, axes_where(shape, summed),
              Result{out, add}, scratch);
}

// The same for sums of the elements of a tensor.
template <class T, class Summed>
std::uint64_t sum_scratch(Shape x, const Summed& summed) {
    const Operand in[] = {{nullptr, x}};
    return sum_scratch<Copy<Stored<T>, Stored<T>>>(x, in, summed);
}
template <class T, class Out, class Summed>
void sum(Queue queue, Tensor<const T> x, const Summed& summed, Out* out, bool add, void* scratch) {
    queue.bfloat = queue.bfloat || std::is_same_v<Out, BFloat16>;
    const Operand in[] = {{x.data, x.shape}};
    sum(queue, Copy<Stored<T>, Stored<T>>(), x.shape, in, 0, summed,
        reinterpret_cast<Stored<Out>*>(out), add, scratch);
}

}  // namespace catena::plugin::cuda
