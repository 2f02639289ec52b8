// Elementwise work on CUDA: one kernel for operands with the shape of the results or with one
// element, and one for operands that are broadcast. An operation is a struct:
//
//     struct Op {
//         using In = Types<float, Float16>;   // of its inputs
//         using Out = Types<Float16>;         // of its outputs
//         using Value = float;                // what it computes in
//         static constexpr bool walks = true; // over operands that are broadcast
//         __device__ void operator()(const Value* x, Value* y) const;  // one element of each
//     };
#pragma once

#include <cstring>

#include "catena/plugin/cuda/index.hpp"
#include "catena/plugin/cuda/launch.cuh"
#include "catena/plugin/cuda/pack.cuh"
#include "catena/plugin/elementwise.hpp"

namespace catena::plugin::cuda {

// Tensors of an operation. An input without data counts as zeros, an output without is not written.
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

// Sets of ports, as bits: whose packs are aligned, who has one value for all.
struct Sets {
    std::uint64_t aligned_in, aligned_out, single, adds;
};
CATENA_FN bool in_set(std::uint64_t set, int i) { return (set >> i & 1) != 0; }

// Parameters have no padding, whose bytes would be anything: the same bytes for the same call.
template <class Op>
struct Padded {
    Op op;
    unsigned char rest[8 - sizeof(Op) % 8];
};

template <class Op>
struct Flat {
    Padded<Op> padded;
    std::int64_t n;  // elements
    std::int64_t units;
    const void* in[n_in<Op> + 1];
    void* out[n_out<Op> + 1];
    Sets sets;
};
template <class Op>
using WalkOf = Walk<std::uint32_t, n_in<Op> == 0 ? 1 : n_in<Op>>;
template <class Op>
struct Walked {
    Padded<Op> padded;
    std::uint32_t units;
    std::uint32_t whole;
    const void* in[n_in<Op> + 1];
    void* out[n_out<Op> + 1];
    Sets sets;
    WalkOf<Op> walk;
};

// x[k] = the pack of input k from its element `at` on, or its one value `width` times.
template <class C, int width, class T>
__device__ __forceinline__ void load_input(const void* data, std::int64_t at, bool single,
                                           bool whole, int count, C (&x)[width]) {
    const T* const p = static_cast<const T*>(data);
    if (p == nullptr || single) {
        const C value = p == nullptr ? C(0) : load_as<C>(p[at]);
        CATENA_UNROLL
        for (int j = 0; j < width; ++j) x[j] = value;
    } else {
        load<width>(p + at, whole, count, x);
    }
}
template <class C, int width, class... T, std::size_t... K>
__device__ __forceinline__ void load_inputs(Types<T...>, std::index_sequence<K...>,
                                            const void* const* in, const std::int64_t* at,
                                            const Sets& sets, bool whole,
                                            [[maybe_unused]] int count,
                                            C (&x)[sizeof...(T) + 1][width]) {
    (load_input<C, width, T>(in[K], at[K], in_set(sets.single, K),
                             whole && in_set(sets.aligned_in, K), count, x[K]),
     ...);
}
template <class C, int width, class... T, std::size_t... K>
__device__ __forceinline__ void store_outputs(Types<T...>, std::index_sequence<K...>,
                                              void* const* out, std::int64_t at, const Sets& sets,
                                              bool whole, int count,
                                              C (&y)[sizeof...(T) + 1][width]) {
    ((out[K] == nullptr
          ? void()
          : cuda::store(static_cast<T*>(out[K]) + at, whole && in_set(sets.aligned_out, K), count,
                        in_set(sets.adds, K), y[K])),
     ...);
}
// The operation, element by element of a pack.
template <class Op, int width>
__device__ __forceinline__ void compute(const Op& op,
                                        const typename Op::Value (&x)[n_in<Op> + 1][width],
                                        typename Op::Value (&y)[n_out<Op> + 1][width]) {
    using C = typename Op::Value;
    CATENA_UNROLL
    for (int j = 0; j < width; ++j) {
        C from[n_in<Op> + 1];
        C to[n_out<Op> + 1];
        CATENA_UNROLL
        for (int k = 0; k < n_in<Op>; ++k) from[k] = x[k][j];
        op(from, to);
        CATENA_UNROLL
        for (int k = 0; k < n_out<Op>; ++k) y[k][j] = to[k];
    }
}
template <class Op>
__global__ void __launch_bounds__(block) flat_kernel(const __grid_constant__ Flat<Op> p) {
    using C = typename Op::Value;
    constexpr int w = width<Op>;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * block;
    for (std::int64_t u = static_cast<std::int64_t>(blockIdx.x) * block + threadIdx.x; u < p.units;
         u += step) {
        const std::int64_t first = u * w;
        const bool whole = first + w <= p.n;
        const int count = whole ? w : static_cast<int>(p.n - first);
        std::int64_t at[n_in<Op> + 1];
        CATENA_UNROLL
        for (int k = 0; k < n_in<Op>; ++k) at[k] = in_set(p.sets.single, k) ? 0 : first;
        C x[n_in<Op> + 1][w];
        C y[n_out<Op> + 1][w];
        load_inputs<C, w>(typename Op::In(), std::make_index_sequence<n_in<Op>>(), p.in, at, p.sets,
                          whole, count, x);
        compute<Op, w>(p.padded.op, x, y);
        store_outputs<C, w>(typename Op::Out(), std::make_index_sequence<n_out<Op>>(), p.out, first,
                            p.sets, whole, count, y);
    }
}
template <class Op>
__global__ void __launch_bounds__(block) walk_kernel(const __grid_constant__ Walked<Op> p) {
    using C = typename Op::Value;
    constexpr int w = width<Op>;
    for (std::uint32_t u = blockIdx.x * block + threadIdx.x; u < p.units; u += gridDim.x * block) {
        const auto unit = p.walk.locate(u);
        C x[n_in<Op> + 1][w];
        C y[n_out<Op> + 1][w];
        load_inputs<C, w>(typename Op::In(), std::make_index_sequence<n_in<Op>>(), p.in, unit.at,
                          p.sets, p.whole != 0, unit.count, x);
        compute<Op, w>(p.padded.op, x, y);
        store_outputs<C, w>(typename Op::Out(), std::make_index_sequence<n_out<Op>>(), p.out,
                            unit.first, p.sets, p.whole != 0, unit.count, y);
    }
}

template <int width, class... T>
std::uint64_t aligned_set(Types<T...>, const void* const* data) {
    std::uint64_t set = 0;
    int k = 0;
    ((set |= std::uint64_t{is_aligned<T, width>(data[k])} << k, ++k), ...);
    return set;
}
template <class... T>
void move_by(Types<T...>, const void** data, const std::int64_t* at) {
    int k = 0;
    ((data[k] = data[k] == nullptr ? nullptr : static_cast<const T*>(data[k]) + at[k], ++k), ...);
}
template <class... T>
void move_by(Types<T...>, void** data, std::int64_t at) {
    int k = 0;
    ((data[k] = data[k] == nullptr ? nullptr : static_cast<T*>(data[k]) + at, ++k), ...);
}
template <class P, class Op>
void clear(P& p, const Op& op) {
    static_assert(std::is_trivially_copyable_v<P> && std::is_trivially_copyable_v<Op>);
    std::memset(static_cast<void*>(&p), 0, sizeof p);
    std::memcpy(static_cast<void*>(&p.padded.op), &op, sizeof op);
}
// What Flat and Walked have in common.
template <class Op, class P>
void set_ports(P& p, const Op& op, const Operand* in, const Result* out) {
    clear(p, op);
    for (int k = 0; k < n_in<Op>; ++k) p.in[k] = in[k].data;
    for (int k = 0; k < n_out<Op>; ++k) {
        p.out[k] = out[k].data;
        if (out[k].add) p.sets.adds |= std::uint64_t{1} << k;
    }
}
template <class Op, class P>
void set_aligned(P& p) {
    p.sets.aligned_in = aligned_set<width<Op>>(typename Op::In(), p.in);
    p.sets.aligned_out = aligned_set<width<Op>>(typename Op::Out(), p.out);
}

// Whether no operand has to be walked over: all have as many elements as the results, or one.
inline bool is_flat(Shape shape, const Operand* in, int n) {
    const std::int64_t size = size_of(shape);
    for (int k = 0; k < n; ++k) {
        if (in[k].data == nullptr) continue;
        const std::int64_t own = size_of(in[k].shape);
        if (own != size && own != 1) return false;
    }
    return true;
}

template <class Op>
[[noreturn, gnu::cold]] void fail_walk(const Queue& queue) {
    fail(CATENA_E_UNSUPPORTED, queue.function, "broadcasting",
         "at most " + std::to_string(WalkOf<Op>::most) + " axes that differ", "more");
}

}  // namespace detail

// results = op(operands), for results of a shape that all operands broadcast to.
template <class Op>
void map(const Queue& queue, const Op& op, Shape shape, const Operand* in, const Result* out) {
    using namespace detail;
    const std::int64_t n = size_of(shape);
    if (n == 0) return;
    if (!Op::walks || is_flat(shape, in, n_in<Op>)) {
        Flat<Op> p;
        set_ports<Op>(p, op, in, out);
        p.n = n;
        p.units = (n + width<Op> - 1) / width<Op>;
        for (int k = 0; k < n_in<Op>; ++k)
            if (in[k].data != nullptr && n > 1 && size_of(in[k].shape) == 1)
                p.sets.single |= std::uint64_t{1} << k;
        set_aligned<Op>(p);
        queue.launch(&flat_kernel<Op>, queue.grid(p.units), block, p);
        return;
    }
    if constexpr (Op::walks) {
        WalkOf<Op> walk;
        Shape shapes[n_in<Op> + 1];
        for (int k = 0; k < n_in<Op>; ++k) shapes[k] = in[k].data == nullptr ? shape : in[k].shape;
        if (!walk.build(shape, shapes, width<Op>)) fail_walk<Op>(queue);
        walk.for_each_part([&](const WalkOf<Op>& part, std::int64_t first, const auto& at) {
            Walked<Op> p;
            set_ports<Op>(p, op, in, out);
            move_by(typename Op::In(), p.in, at);
            move_by(typename Op::Out(), p.out, first);
            p.walk = part;
            p.units = static_cast<std::uint32_t>(part.units());
            p.whole = part.whole() ? 1 : 0;
            for (int k = 0; k < n_in<Op>; ++k)
                if (part.single(k)) p.sets.single |= std::uint64_t{1} << k;
            set_aligned<Op>(p);
            queue.launch(&walk_kernel<Op>, queue.grid(p.units), block, p);
        });
    }
}
template <class Op, std::size_t n, std::size_t m>
void map(const Queue& queue, const Op& op, Shape shape, const Operand (&in)[n],
         const Result (&out)[m]) {
    static_assert(n == detail::n_in<Op> && m == detail::n_out<Op>);
    map(queue, op, shape, static_cast<const Operand*>(in), static_cast<const Result*>(out));
}

// y = x, in another type, or repeated.
template <class From, class To, bool repeats = false>
struct Copy {
    using In = Types<From>;
    using Out = Types<To>;
    using Value = Compute<From>;
    static constexpr bool walks = repeats;
    __device__ __forceinline__ void operator()(const Value* x, Value* y) const { y[0] = x[0]; }
};

}  // namespace catena::plugin::cuda
