// Sums on CUDA of an operation's values, over any axes, computed on the fly. A block has lanes for
// sums and for their terms (see Fold). With few sums, the terms are also split over blocks, whose
// partial sums in scratch memory are added in order. Terms are added in short runs, then pairwise, in
// an order that depends only on the shape.
#pragma once

#include "catena/plugin/cuda/elementwise.cuh"

namespace catena::plugin::cuda {

// What values of C are added up in: floats in their type, integers modulo 2^64.
template <class C>
using Accumulator = std::conditional_t<std::is_integral_v<C>, std::uint64_t, C>;

struct Plus {
    template <class V>
    CATENA_FN V operator()(V a, V b) const {
        return a + b;
    }
};

// Axes along which a tensor of shape `to` was repeated to `from`.
struct Repeats {
    bool operator()(std::size_t d) const {
        const std::size_t more = from.size() - to.size();
        return d < more || (to[d - more] == 1 && from[d] != 1);
    }
    Shape from, to;
};

namespace detail {

template <int inputs, int outputs, std::size_t bytes>
struct Summed : Ports<inputs, outputs, bytes> {
    Fold fold;
    Walk<inputs> walk;              // over operands that are broadcast
    void* partial;                  // splits times as many sums; null with one split
    std::uint64_t wanted[outputs];  // all ones, or 0
    std::uint64_t add;
};
template <class Op>
using SummedOf = Summed<n_in<Op>, n_out<Op>, op_bytes<Op>>;

// The operation's value at a place of the tensor.
template <class Op>
__device__ __forceinline__ typename Op::Value term_at(const SummedOf<Op>& p, std::int64_t place) {
    std::int64_t at[n_in<Op>];
    if constexpr (Op::walks) {
        p.walk.locate(place, at);
    } else {
        CATENA_UNROLL
        for (int k = 0; k < n_in<Op>; ++k) at[k] = place;
    }
    typename Op::Value x[n_in<Op> + 1][1];
    typename Op::Value y[n_out<Op> + 1][1];
    load_inputs<1>(typename Op::In(), std::make_index_sequence<n_in<Op>>(), p.in, at, p.sets, x);
    compute<Op, 1>(p.template op<Op>(), x, y);
    using Bits = std::conditional_t<sizeof(typename Op::Value) == 8, std::uint64_t, std::uint32_t>;
    Bits bits = 0;
    CATENA_UNROLL  // the one that is wanted; an index would put y into memory
        for (int k = 0; k < n_out<Op>; ++k) bits |=
        std::bit_cast<Bits>(y[k][0]) & static_cast<Bits>(p.wanted[k]);
    return std::bit_cast<typename Op::Value>(bits);
}
// Stores a sum, or adds it to what is there.
template <class Out, class Acc>
__device__ __forceinline__ void store_sum(Out& out, Acc sum, bool add) {
    store(out, add, static_cast<Compute<Out>>(sum));
}
template <class Op, class Out>
__global__ void __launch_bounds__(block) sum_kernel(const __grid_constant__ SummedOf<Op> p) {
    using Acc = Accumulator<typename Op::Value>;
    constexpr int run = 16;  // terms that are added one after the other
    const Fold& f = p.fold;
    const int t = static_cast<int>(threadIdx.x);
    const int kept_lane = f.rows ? t / f.reduced_lanes : t % f.kept_lanes;
    const int lane = f.rows ? t % f.reduced_lanes : t / f.kept_lanes;
    const std::int64_t sum = static_cast<std::int64_t>(blockIdx.x) * f.kept_lanes + kept_lane;
    const bool there = sum < f.kept.size;
    const std::int64_t base = f.locate_kept(there ? sum : 0);
    std::int64_t term = static_cast<std::int64_t>(blockIdx.y) * f.per_split;
    const std::int64_t last = !there                                ? 0
                              : term + f.per_split < f.reduced.size ? term + f.per_split
                                                                    : f.reduced.size;
    term += lane;
    Acc total = 0;
    CATENA_ROLL
    while (term < last) {
        Acc part = 0;
        CATENA_ROLL
        for (int i = 0; i < run && term < last; ++i, term += f.reduced_lanes)
            part += static_cast<Acc>(term_at<Op>(p, base + f.locate_reduced(term)));
        total += part;
    }
    total = join_lanes(total, lane, f.reduced_lanes, f.rows ? 1 : f.kept_lanes, Plus());
    if (lane != 0 || !there) return;
    if (p.partial != nullptr) static_cast<Acc*>(p.partial)[blockIdx.y * f.kept.size + sum] = total;
    else store_sum(static_cast<Out*>(p.out[0])[sum], total, p.add != 0);
}
// Adds up the parts of each sum. A block has `across` sums side by side, and lanes for each.
template <class Acc, class Out>
__global__ void __launch_bounds__(block)
    join_kernel(const Acc* partial, std::int64_t n, std::int64_t splits, int across, Out* out,
                bool add) {
    const int t = static_cast<int>(threadIdx.x);
    const int lane = t / across;
    const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * across + t % across;
    Acc sum = 0;
    for (std::int64_t s = lane; i < n && s < splits; s += block / across) sum += partial[s * n + i];
    sum = join_lanes(sum, lane, block / across, across, Plus());
    if (lane == 0 && i < n) store_sum(out[i], sum, add);
}

template <int inputs, int outputs, std::size_t bytes>
struct SumKernels {
    void (*sum)(Summed<inputs, outputs, bytes>);
    void (*join)(const Queue& queue, const void* partial, std::int64_t n, std::int64_t splits,
                 const Result& out);
    bool walks;
    std::uint32_t op_size, out_size;
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
inline constexpr ParametersOf<SumKernels, Op> sum_kernels = {
    &sum_kernel<Op, Out>, &launch_join<Accumulator<typename Op::Value>, Out>, Op::walks, sizeof(Op),
    sizeof(Out)};

template <class Summed>
std::uint64_t partial_bytes(Shape shape, const Summed& summed, std::size_t sum_size) {
    if (size_of(shape) == 0) return 0;
    const Fold fold(shape, summed);
    if (fold.splits == 1) return 0;
    return static_cast<std::uint64_t>(fold.splits * fold.kept.size) * sum_size;
}
// A set of axes, as bits.
struct Axes {
    template <class Summed>
    Axes(Shape shape, const Summed& summed) {
        for (std::size_t d = 0; d < shape.size(); ++d) set |= std::uint32_t{summed(d)} << d;
    }
    bool operator()(std::size_t d) const { return (set >> d & 1) != 0; }
    std::uint32_t set = 0;
};

template <int inputs, int outputs, std::size_t bytes>
[[gnu::noinline]] void sum_ports(const Queue& queue,
                                 const SumKernels<inputs, outputs, bytes>& kernels, const void* op,
                                 Shape shape, const Operand* in, int which, const Axes& summed,
                                 const Result& out, void* scratch) {
    if (size_of(shape) == 0) {
        std::size_t n = kernels.out_size;
        for (std::size_t d = 0; d < shape.size(); ++d)
            if (!summed(d)) n *= static_cast<std::size_t>(shape[d]);
        if (!out.add) queue.zero(out.data, n);
        return;
    }
    Summed<inputs, outputs, bytes> p;
    set_operation(p, op, kernels.op_size);
    p.fold = Fold(shape, summed);
    p.out[0] = out.data;
    p.add = out.add;
    p.wanted[which] = ~std::uint64_t{0};
    if (p.fold.splits > 1) p.partial = scratch;
    Shape own[inputs];
    for (int k = 0; k < inputs; ++k) {
        p.in[k] = in[k].data;
        own[k] = in[k].data == nullptr ? shape : in[k].shape;
    }
    if (kernels.walks && !p.walk.build(shape, own)) fail_walk(queue, p.walk.most);
    queue.launch(kernels.sum,
                 dim3(static_cast<unsigned>(p.fold.blocks), static_cast<unsigned>(p.fold.splits)),
                 block, p);
    if (p.partial != nullptr) kernels.join(queue, p.partial, p.fold.kept.size, p.fold.splits, out);
}

}  // namespace detail

// Bytes of scratch that sum() takes for these operands.
template <class Op, class Summed>
std::uint64_t sum_scratch(Shape shape, const Operand*, const Summed& summed) {
    return detail::partial_bytes(shape, summed, sizeof(Accumulator<typename Op::Value>));
}

// out = sums of output `which` of op(operands) over the axes that summed(d) names, or added to out.
// Operands broadcast to shape; out is dense. scratch has the bytes that sum_scratch() says.
template <class Op, class Out, class Summed>
void sum(const Queue& queue, const Op& op, Shape shape, const Operand* in, int which,
         const Summed& summed, Out* out, bool add, void* scratch) {
    detail::sum_ports(queue, detail::sum_kernels<Op, Out>, &op, shape, in, which,
                      detail::Axes(shape, summed), Result{out, add}, scratch);
}

// The same for sums of the elements of a tensor.
template <class T, class Summed>
std::uint64_t sum_scratch(Shape x, const Summed& summed) {
    return sum_scratch<Copy<Stored<T>, Stored<T>>>(x, nullptr, summed);
}
template <class T, class Out, class Summed>
void sum(Queue queue, Tensor<const T> x, const Summed& summed, Out* out, bool add, void* scratch) {
    queue.bfloat = queue.bfloat || std::is_same_v<Out, BFloat16>;
    const Operand in[] = {{x.data, x.shape}};
    sum(queue, Copy<Stored<T>, Stored<T>>(), x.shape, in, 0, summed,
        reinterpret_cast<Stored<Out>*>(out), add, scratch);
}

// As for a Call on the CPU: y = x of shape `from`, summed to the shape `to` that broadcasts to it. The
// call's scratch has the bytes that sum_scratch<T>(from, Repeats{from, to}) says.
template <class F, class T>
void sum_to_shape(const Call<F>& call, const T* x, Shape from, T* y, Shape to, bool add) {
    sum(call.queue(), Tensor<const T>{x, from}, Repeats{from, to}, y, add,
        call.template scratch<void>());
}

}  // namespace catena::plugin::cuda
