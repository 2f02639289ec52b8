// Sums on CUDA of an operation's values, over any axes, computed on the fly. A block has lanes for
// sums and for their terms (see Fold). With few sums, the terms are also split over blocks, whose
// partial sums in scratch memory are added in order. Terms are added in short runs, then pairwise,
// in an order that depends only on the shape.
#pragma once

#include "catena/plugin/cuda/elementwise.cuh"

namespace catena::plugin::cuda {

// The type in which values of C are summed: floats in their own type, integers modulo 2^64.
template <class C>
using Accumulator = std::conditional_t<std::is_integral_v<C>, std::uint64_t, C>;

inline bool every_axis(std::size_t) { return true; }
// Axes along which a tensor of shape `to` was repeated to `from`.
struct Repeats {
    bool operator()(std::size_t d) const {
        const std::size_t more = from.size() - to.size();
        return d < more || (to[d - more] == 1 && from[d] != 1);
    }
    Shape from, to;
};

// The terms that a thread of a Fold's block adds up: their offsets in the tensor.
class FoldTerms {
public:
    __device__ __forceinline__ explicit FoldTerms(const Fold& fold) : f_(fold) {
        const int t = static_cast<int>(threadIdx.x);
        const int kept_lane = f_.rows ? t / f_.reduced_lanes : t % f_.kept_lanes;
        lane = f_.rows ? t % f_.reduced_lanes : t / f_.kept_lanes;
        sum = static_cast<std::int64_t>(blockIdx.x) * f_.kept_lanes + kept_lane;
        there = sum < f_.kept.size;
        base_ = f_.kept.locate(there ? sum : 0);
        term = static_cast<std::int64_t>(blockIdx.y) * f_.per_split;
        const std::int64_t end = term + f_.per_split;
        last_ = !there ? 0 : end < f_.reduced.size ? end : f_.reduced.size;
        term += lane;
        step_ = f_.reduced.step(f_.reduced_lanes);
        place_ = base_ + f_.reduced.locate(term);
    }
    // Whether there are n more terms.
    __device__ __forceinline__ bool has(int n) const {
        return term + (n - 1) * f_.reduced_lanes < last_;
    }
    __device__ __forceinline__ std::int64_t next() {
        const std::int64_t place = place_;
        term += f_.reduced_lanes;
        place_ = step_ != 0 ? place_ + step_ : base_ + f_.reduced.locate(term);
        return place;
    }
    // Joins the values of all threads of the sum.
    template <class V, class Join>
    __device__ __forceinline__ V join(const V& own, const Join& of_two) const {
        return join_lanes(own, lane, f_.reduced_lanes, f_.rows ? 1 : f_.kept_lanes, of_two);
    }

    int lane;           // of the sum
    bool there;         // whether the thread has a sum
    std::int64_t sum;   // its number
    std::int64_t term;  // the number of the next term

private:
    const Fold& f_;
    std::int64_t base_, last_, step_, place_;
};
// Terms that are loaded before the first of them is used: a thread waits for memory once for all.
inline constexpr int terms_at_once = 4;

namespace detail {

template <class Op>
struct Summed : Ports<Op> {
    Fold fold;
    Walk<n_in<Op>> walk;              // over operands that are broadcast
    void* partial;                    // partial sums of each split; null with one split
    std::uint64_t wanted[n_out<Op>];  // all ones for the output to sum, else 0
    std::uint64_t add;
};

// Returns the operation's value at offset `place` of the tensor.
template <class Op>
__device__ __forceinline__ typename Op::Value term_at(const Summed<Op>& p, std::int64_t place) {
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
    compute<Op, 1>(p.op(), x, y);
    using Bits = std::conditional_t<sizeof(typename Op::Value) == 8, std::uint64_t, std::uint32_t>;
    Bits bits = 0;
    CATENA_UNROLL  // selects the wanted output; an index would put y into memory
        for (int k = 0; k < n_out<Op>; ++k) bits |=
        std::bit_cast<Bits>(y[k][0]) & static_cast<Bits>(p.wanted[k]);
    return std::bit_cast<typename Op::Value>(bits);
}
template <class Op, class Out>
__global__ void __launch_bounds__(block, 1) sum_kernel(const __grid_constant__ Summed<Op> p) {
    using Acc = Accumulator<typename Op::Value>;
    constexpr int run = 16;  // terms that are added one after the other
    FoldTerms terms(p.fold);
    Acc total = 0;
    CATENA_ROLL
    while (terms.has(1)) {
        Acc part = 0;
        int i = 0;
        CATENA_ROLL
        for (; i < run && terms.has(terms_at_once); i += terms_at_once) {
            Acc values[terms_at_once];
            CATENA_UNROLL
            for (Acc& value : values) value = static_cast<Acc>(term_at<Op>(p, terms.next()));
            CATENA_UNROLL
            for (const Acc& value : values) part += value;
        }
        CATENA_ROLL
        for (; i < run && terms.has(1); ++i) part += static_cast<Acc>(term_at<Op>(p, terms.next()));
        total += part;
    }
    total = terms.join(total, std::plus());
    if (terms.lane != 0 || !terms.there) return;
    const std::int64_t sum = terms.sum;
    if (p.partial != nullptr)
        static_cast<Acc*>(p.partial)[blockIdx.y * p.fold.kept.size + sum] = total;
    else store(static_cast<Out*>(p.out[0])[sum], p.add != 0, static_cast<Compute<Out>>(total));
}
// Adds the partial sums of each sum. A block has several lanes for each of `across` adjacent sums.
template <class Acc, class Out>
__global__ void __launch_bounds__(block)
    join_kernel(const Acc* partial, std::int64_t n, std::int64_t splits, int across, Out* out,
                bool add) {
    const int t = static_cast<int>(threadIdx.x);
    const int lane = t / across;
    const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * across + t % across;
    Acc sum = 0;
    for (std::int64_t s = lane; i < n && s < splits; s += block / across) sum += partial[s * n + i];
    sum = join_lanes(sum, lane, block / across, across, std::plus());
    if (lane == 0 && i < n) store(out[i], add, static_cast<Compute<Out>>(sum));
}

}  // namespace detail

// Returns the bytes of scratch memory that sum() needs.
template <class Op, class Summed>
std::uint64_t sum_scratch(const Op&, Shape shape, const Summed& summed) {
    if (size_of(shape) == 0) return 0;
    const Fold fold(shape, summed);
    if (fold.splits == 1) return 0;
    return static_cast<std::uint64_t>(fold.splits * fold.kept.size) *
           sizeof(Accumulator<typename Op::Value>);
}

// Sets out to the sums of output `which` of op(operands) over the axes d with summed(d), or adds
// them to out. Operands broadcast to shape; out is dense. scratch has sum_scratch() bytes.
template <class Op, class Out, class Summed>
void sum(const Queue& queue, const Op& op, Shape shape, const Operand* in, int which,
         const Summed& summed, Out* out, bool add, void* scratch) {
    using namespace detail;
    using Acc = Accumulator<typename Op::Value>;
    if (size_of(shape) == 0) {
        std::size_t n = sizeof(Out);
        for (std::size_t d = 0; d < shape.size(); ++d)
            if (!summed(d)) n *= static_cast<std::size_t>(shape[d]);
        if (!add) queue.zero(out, n);
        return;
    }
    detail::Summed<Op> p;
    set_operation(p, op);
    p.fold = Fold(shape, summed);
    p.out[0] = out;
    p.add = add;
    p.wanted[which] = ~std::uint64_t{0};
    if (p.fold.splits > 1) p.partial = scratch;
    for (int k = 0; k < n_in<Op>; ++k) p.in[k] = in[k].data;
    if (Op::walks) build_walk(p.walk, shape, in, n_in<Op>);
    queue.launch(&sum_kernel<Op, Out>,
                 dim3(static_cast<unsigned>(p.fold.blocks), static_cast<unsigned>(p.fold.splits)),
                 block, p);
    if (p.partial == nullptr) return;
    const std::int64_t n = p.fold.kept.size;
    const auto across = static_cast<int>(ceil2(std::min<std::int64_t>(n, 32)));
    queue.launch(&join_kernel<Acc, Out>, dim3(static_cast<unsigned>((n + across - 1) / across)),
                 block, static_cast<const Acc*>(p.partial), n, p.fold.splits, across, out, add);
}

// The same two functions for sums of a tensor's elements.
template <class T, class Summed>
std::uint64_t sum_scratch(Shape x, const Summed& summed) {
    return sum_scratch(Copy<Stored<T>, Stored<T>>(), x, summed);
}
template <class T, class Out, class Summed>
void sum(Queue queue, Tensor<const T> x, const Summed& summed, Out* out, bool add, void* scratch) {
    queue.bfloat = queue.bfloat || std::is_same_v<Out, BFloat16>;
    const Operand in[] = {{x.data, x.shape}};
    sum(queue, Copy<Stored<T>, Stored<T>>(), x.shape, in, 0, summed,
        reinterpret_cast<Stored<Out>*>(out), add, scratch);
}

// As for a Call on the CPU: sets y to x of shape `from`, summed to `to`, or adds it to y. The
// call's scratch memory must have sum_scratch<T>(from, Repeats{from, to}) bytes.
template <class F, class T>
void sum_to_shape(const Call<F>& call, const T* x, Shape from, T* y, Shape to, bool add) {
    sum(call.queue(), Tensor<const T>{x, from}, Repeats{from, to}, y, add,
        call.template scratch<void>());
}

}  // namespace catena::plugin::cuda
