// Elementwise operations on CUDA. each() calls a rule for each of n indices. map() applies an
// operation. It has one kernel for operands that have the shape of the results or a single element,
// and one for other operands that are broadcast. An operation is a struct:
//
//     struct Op {
//         using In = Types<float, Float16>;   // of its inputs
//         using Out = Types<Float16>;         // of its outputs
//         using Value = float;                // what it computes in
//         static constexpr bool walks = true; // also supports other operands that are broadcast
//         __device__ void operator()(const Value* x, Value* y) const;  // one element of each
//     };
//
// The first four can come from a base class, Operation<In, Out, Value, walks>. The first kernel
// processes packs of elements if all operands are aligned, otherwise single elements.
#pragma once

#include <array>
#include <cstring>
#include <functional>

#include "catena/plugin/cuda/index.hpp"
#include "catena/plugin/cuda/launch.cuh"
#include "catena/plugin/cuda/pack.cuh"
#include "catena/plugin/elementwise.hpp"

namespace catena::plugin::cuda {

template <class Rule>
__global__ void __launch_bounds__(block)
    each_kernel(const __grid_constant__ Rule rule, std::int64_t n) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * block;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * block + threadIdx.x; i < n;
         i += step)
        rule(i);
}
// Calls rule(i) for each i in [0, n). A rule is a struct with
// `__device__ void operator()(std::int64_t i) const`, whose members are its arguments.
template <class Rule>
void each(const Queue& queue, std::int64_t n, const Rule& rule) {
    if (n > 0) queue.launch(&each_kernel<Rule>, queue.grid(n), block, rule, n);
}

// Returns the value of the thread of the warp with index `thread`, modulo 32. All threads of the
// warp must call it.
template <class V>
__device__ __forceinline__ V value_of_thread(const V& own, int thread) {
    static_assert(std::is_trivially_copyable_v<V>);
    unsigned words[(sizeof(V) + 3) / 4] = {};
    memcpy(words, &own, sizeof(V));
    CATENA_UNROLL
    for (unsigned& word : words) word = __shfl_sync(0xffffffffu, word, thread);
    V other;
    memcpy(&other, words, sizeof(V));
    return other;
}

// Combines the values of a group of threads in a fixed order. Each of them gets the result. The
// group has `lanes` threads, a power of two, whose indices in the block differ by
// `step`, another; the calling thread is number `lane`. All threads of the block must call it.
template <class V, class Join>
__device__ __forceinline__ V join_lanes(V own, int lane, int lanes, int step, const Join& join) {
    constexpr int warp = 32;
    __shared__ V shared[block];
    const int t = static_cast<int>(threadIdx.x);
    const int first = t - lane * step;
    if (lanes == 1) return own;
    // Afterwards the first thread of the group in each warp has the warp's value.
    CATENA_ROLL
    for (int apart = step; apart < warp && apart < lanes * step; apart *= 2) {
        const V next = value_of_thread(own, t + apart);
        own = join(own, next);
    }
    if (lanes * step <= warp) return value_of_thread(own, first);
    __syncthreads();  // `shared` is no longer read by an earlier call
    shared[t] = own;
    __syncthreads();
    const int apart = step < warp ? warp : step;
    own = shared[first];
    CATENA_ROLL
    for (int at = first + apart; at < first + lanes * step; at += apart)
        own = join(own, shared[at]);
    return own;
}

// The operands and results of an operation. An operand whose data is null is read as zeros; a
// result whose data is null is not written.
struct Operand {
    const void* data = nullptr;
    Shape shape;
};
struct Result {
    void* data = nullptr;
    bool add = false;
};

namespace detail {

template <class... A, class... B>
constexpr int width_of(Types<A...>, Types<B...>) {
    return pack_width<A..., B...>();
}
template <class Op>
inline constexpr int width = width_of(typename Op::In(), typename Op::Out());
template <class Op>
inline constexpr int n_in = Op::In::n;
template <class Op>
inline constexpr int n_out = Op::Out::n;

// Sets of ports, as bits: inputs with a single value for all elements, outputs that are added to.
struct Sets {
    std::uint64_t single, adds;
};
CATENA_FN bool in_set(std::uint64_t set, int i) { return (set >> i & 1) != 0; }

// An operation as raw bytes, so that the parameters of a kernel have a trivial type.
template <class Operation>
struct Packed {
    static_assert(std::is_trivially_copyable_v<Operation> && alignof(Operation) <= 8);
    CATENA_FN const Operation& op() const { return *reinterpret_cast<const Operation*>(operation); }
    alignas(8) unsigned char operation[sizeof(Operation)];
};
// The parameters of a kernel: its operation and its ports.
template <class Op>
struct Ports : Packed<Op> {
    const void* in[n_in<Op> + 1];
    void* out[n_out<Op> + 1];
    Sets sets;
};
template <class Op>
struct Flat : Ports<Op> {
    std::int64_t n;      // elements
    std::int64_t packs;  // number of packs; the remaining elements are processed one by one
};
// x[k] = w elements of input k, starting at at[k]; a single value is repeated w times.
template <int w, class C, class... T, std::size_t... K>
__device__ __forceinline__ void load_inputs(Types<T...>, std::index_sequence<K...>,
                                            const void* const* in, const std::int64_t* at,
                                            const Sets& sets, C (&x)[sizeof...(T) + 1][w]) {
    [[maybe_unused]] const auto load_input = [&]<class U>(int k, const U* p, C(&to)[w]) {
        const auto fill = [&](C value) {
            CATENA_UNROLL
            for (int j = 0; j < w; ++j) to[j] = value;
        };
        if (p == nullptr) fill(C(0));
        else if (w > 1 && in_set(sets.single, k)) fill(load_as<C>(p[at[k]]));
        else load_pack<w>(p + at[k], to);
    };
    (load_input(static_cast<int>(K), static_cast<const T*>(in[K]), x[K]), ...);
}
template <int w, class C, class... T, std::size_t... K>
__device__ __forceinline__ void store_outputs(Types<T...>, std::index_sequence<K...>,
                                              void* const* out, std::int64_t at, const Sets& sets,
                                              const C (&y)[sizeof...(T) + 1][w]) {
    ((out[K] == nullptr ? void()
                        : store_pack(static_cast<T*>(out[K]) + at, in_set(sets.adds, K), y[K])),
     ...);
}
// Applies the operation to w elements, one after another.
template <class Op, int w>
__device__ __forceinline__ void compute(const Op& op,
                                        const typename Op::Value (&x)[n_in<Op> + 1][w],
                                        typename Op::Value (&y)[n_out<Op> + 1][w]) {
    using C = typename Op::Value;
    CATENA_UNROLL
    for (int j = 0; j < w; ++j) {
        C from[n_in<Op> + 1];
        C to[n_out<Op> + 1];
        CATENA_UNROLL
        for (int k = 0; k < n_in<Op>; ++k) from[k] = x[k][j];
        op(from, to);
        CATENA_UNROLL
        for (int k = 0; k < n_out<Op>; ++k) y[k][j] = to[k];
    }
}
// Applies the operation to w elements: one pack or one element.
template <class Op, int w>
__device__ __forceinline__ void apply(const Op& op, const void* const* in, void* const* out,
                                      const std::int64_t* at, std::int64_t first,
                                      const Sets& sets) {
    typename Op::Value x[n_in<Op> + 1][w];
    typename Op::Value y[n_out<Op> + 1][w];
    load_inputs<w>(typename Op::In(), std::make_index_sequence<n_in<Op>>(), in, at, sets, x);
    compute<Op, w>(op, x, y);
    store_outputs<w>(typename Op::Out(), std::make_index_sequence<n_out<Op>>(), out, first, sets,
                     y);
}
// Processes packs `pack`, `pack` + step, ... below `packs`, then elements `element`, ... below n.
template <class Op>
__device__ __forceinline__ void apply_flat(const Op& op, const void* const* in, void* const* out,
                                           const Sets& sets, std::int64_t pack, std::int64_t packs,
                                           std::int64_t element, std::int64_t n,
                                           std::int64_t step) {
    const auto at = [&](std::int64_t first, std::int64_t(&place)[n_in<Op> + 1]) {
        CATENA_UNROLL
        for (int k = 0; k < n_in<Op>; ++k) place[k] = in_set(sets.single, k) ? 0 : first;
    };
    std::int64_t place[n_in<Op> + 1];
    for (; pack < packs; pack += step) {
        at(pack * width<Op>, place);
        apply<Op, width<Op>>(op, in, out, place, pack * width<Op>, sets);
    }
    for (; element < n; element += step) {
        at(element, place);
        apply<Op, 1>(op, in, out, place, element, sets);
    }
}

// The 1, blocks for each multiprocessor, is the least. Without it, ptxas aims at more blocks, and
// spills registers of some kernels.
template <class Op>
__global__ void __launch_bounds__(block, 1) flat_kernel(const __grid_constant__ Flat<Op> p) {
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * block + threadIdx.x;
    apply_flat(p.op(), p.in, p.out, p.sets, thread, p.packs, p.packs * width<Op> + thread, p.n,
               static_cast<std::int64_t>(gridDim.x) * block);
}
// The rule of each() for operands that are broadcast.
template <class Op>
struct Walked : Ports<Op> {
    static constexpr int operands = n_in<Op> == 0 ? 1 : n_in<Op>;
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        std::int64_t at[operands];
        walk.locate(i, at);
        apply<Op, 1>(this->op(), this->in, this->out, at, i, this->sets);
    }
    Walk<operands> walk;
};

// Whether packs of a port, with elements of `size` bytes, are aligned.
inline bool is_aligned(const void* data, int width, std::size_t size) {
    const auto chunk = std::min<std::size_t>(16, static_cast<std::size_t>(width) * size);
    return reinterpret_cast<std::uintptr_t>(data) % chunk == 0;
}
template <class... T>
constexpr std::array<std::size_t, sizeof...(T) + 1> sizes_of(Types<T...>) {
    return {sizeof(T)...};
}
// Sets the operation and zeroes all other bytes, so that equal calls have bit-identical parameters.
template <class P, class Op>
void set_operation(P& p, const Op& op) {
    static_assert(std::is_trivially_copyable_v<P>);
    std::memset(static_cast<void*>(&p), 0, sizeof p);
    std::memcpy(p.operation, &op, sizeof op);
}
inline std::uint64_t bit(bool set, int k) { return std::uint64_t{set} << k; }

// Whether no index arithmetic is needed: each operand has one element, or as many as the results.
inline bool is_flat(Shape shape, const Operand* in, int n) {
    const std::int64_t size = size_of(shape);
    return std::all_of(in, in + n, [&](const Operand& x) {
        const std::int64_t own = x.data == nullptr ? 1 : size_of(x.shape);
        return own == size || own == 1;
    });
}

// Prepares the index arithmetic for operands that are broadcast. An operand without data is treated
// as if it had the shape of the results.
template <int n>
void build_walk(Walk<n>& walk, Shape shape, const Operand* in, int inputs) {
    Shape shapes[n];
    for (int k = 0; k < inputs; ++k) shapes[k] = in[k].data == nullptr ? shape : in[k].shape;
    walk.build(shape, shapes);
}

}  // namespace detail

// results = op(operands). All operands must broadcast to `shape`, the shape of the results.
template <class Op>
void map(const Queue& queue, const Op& op, Shape shape, const Operand* in, const Result* out) {
    using namespace detail;
    constexpr int inputs = n_in<Op>, outputs = n_out<Op>;
    const std::int64_t n = size_of(shape);
    if (n == 0) return;
    bool aligned = true;
    const auto set_ports = [&](Ports<Op>& p) {
        constexpr auto sizes = sizes_of(typename Op::Out());
        for (int k = 0; k < inputs; ++k) p.in[k] = in[k].data;
        for (int k = 0; k < outputs; ++k) {
            p.out[k] = out[k].data;
            p.sets.adds |= bit(out[k].add, k);
            aligned = aligned && is_aligned(p.out[k], width<Op>, sizes[k]);
        }
    };
    if constexpr (Op::walks) {
        if (!is_flat(shape, in, inputs)) {
            Walked<Op> p;
            set_operation(p, op);
            set_ports(p);
            build_walk(p.walk, shape, in, inputs);
            return each(queue, n, p);
        }
    }
    Flat<Op> p;
    set_operation(p, op);
    set_ports(p);
    constexpr auto sizes = sizes_of(typename Op::In());
    for (int k = 0; k < inputs; ++k) {
        const bool single = in[k].data != nullptr && n > 1 && size_of(in[k].shape) == 1;
        p.sets.single |= bit(single, k);
        aligned = aligned && (single || is_aligned(p.in[k], width<Op>, sizes[k]));
    }
    p.n = n;
    p.packs = aligned ? n / width<Op> : 0;
    queue.launch(&flat_kernel<Op>, queue.grid(std::max(p.packs, n - p.packs * width<Op>)), block,
                 p);
}
template <class Op, std::size_t n, std::size_t m>
void map(const Queue& queue, const Op& op, Shape shape, const Operand (&in)[n],
         const Result (&out)[m]) {
    static_assert(n == detail::n_in<Op> && m == detail::n_out<Op>);
    map(queue, op, shape, static_cast<const Operand*>(in), static_cast<const Result*>(out));
}

// Base class with the declarations of an operation.
template <class Inputs, class Outputs, class V, bool broadcasts = false>
struct Operation {
    using In = Inputs;
    using Out = Outputs;
    using Value = V;
    static constexpr bool walks = broadcasts;
};
// y = x, converted to another type; with `repeats`, also broadcast.
template <class From, class To, bool repeats = false>
struct Copy : Operation<Types<From>, Types<To>, Compute<From>, repeats> {
    using Value = Compute<From>;
    __device__ __forceinline__ void operator()(const Value* x, Value* y) const { y[0] = x[0]; }
};

// Broadcasts x of shape `from` to y of shape `to`, or adds it to y, as broadcast_copy() on the CPU.
template <class F, class T>
void broadcast_copy(const Call<F>& call, const T* x, Shape from, T* y, Shape to, bool add) {
    map(call.queue(), Copy<Stored<T>, Stored<T>, true>(), to, {Operand{x, from}}, {Result{y, add}});
}

}  // namespace catena::plugin::cuda
