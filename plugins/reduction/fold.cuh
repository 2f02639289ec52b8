// Reductions by the states of states.hpp, on CUDA. Fold shares the elements among threads; each
// thread adds runs of elements to a state and joins their totals, in an order that depends only on
// the shape.
#pragma once

#include <catena/plugin/cuda/reduce.cuh>

#include "fold.hpp"

namespace catena::plugins {

template <class S>
concept HasOpposite = requires(typename S::Number x) {
    S::opposite(x);
};

// How a result is stored, in the outputs of types A and B.
template <class S, class Finish, class A, class B>
struct Finished : Finish {
    template <class Total>
    __device__ __forceinline__ void put(std::int64_t k, Total total) const {
        if constexpr (HasOpposite<S>)
            if (opposite != 0) total.first = S::opposite(total.first);
        const auto result = (*this)(total);
        cuda::store(first[k], add_first != 0, static_cast<cuda::Compute<A>>(result.first));
        if constexpr (!std::is_same_v<B, None>)
            cuda::store(second[k], add_second != 0, static_cast<cuda::Compute<B>>(result.second));
    }
    A* first;
    B* second;
    std::int64_t add_first, add_second, opposite;
};
struct JoinTotals {
    template <class Total>
    __device__ __forceinline__ Total operator()(const Total& a, const Total& b) const {
        Total joined = a;
        joined.join(b);
        return joined;
    }
};

template <class S, class T, class Finish>
struct Folding {
    cuda::Fold fold;
    const T* x;
    typename S::Total* partial;  // totals of each split; null with one split
    Finish finish;
};
template <class S, class T, class Finish>
__global__ void __launch_bounds__(cuda::block, 1)  // see flat_kernel
    fold_kernel(const __grid_constant__ Folding<S, T, Finish> p) {
    using Total = typename S::Total;
    using C = typename S::Number;
    constexpr int run = 64;  // elements of a state
    cuda::FoldTerms terms(p.fold);
    const auto next = [&] {
        C x = static_cast<C>(cuda::load_as<cuda::Compute<T>>(p.x[terms.next()]));
        if constexpr (HasOpposite<S>)
            if (p.finish.opposite != 0) x = S::opposite(x);
        return x;
    };
    Total total = Total::start();
    CATENA_ROLL
    while (terms.has(1)) {
        const std::int64_t from = terms.term;
        S state = S::start();
        int n = 0;
        const auto take = [&](C x) {
            state.take(x, static_cast<Place<C>>(n * p.fold.reduced_lanes),
                       C(1) / static_cast<C>(n + 1));
            ++n;
        };
        CATENA_ROLL
        while (n < run && terms.has(cuda::terms_at_once)) {
            C values[cuda::terms_at_once];
            CATENA_UNROLL
            for (C& x : values) x = next();
            CATENA_UNROLL
            for (const C x : values) take(x);
        }
        CATENA_ROLL
        while (n < run && terms.has(1)) take(next());
        total.join(Total::of(state, n, from));
    }
    total = terms.join(total, JoinTotals());
    if (terms.lane != 0 || !terms.there) return;
    if (p.partial != nullptr) p.partial[blockIdx.y * p.fold.kept.size + terms.sum] = total;
    else p.finish.put(terms.sum, total);
}
// Joins the totals of the splits. A block has several lanes for each of `across` adjacent results.
template <class Total, class Finish>
__global__ void __launch_bounds__(cuda::block)
    join_splits_kernel(const Total* partial, std::int64_t n, std::int64_t splits,
                       std::int64_t across, const Finish finish) {
    const int t = static_cast<int>(threadIdx.x);
    const int side = static_cast<int>(across);
    const int lane = t / side;
    const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * side + t % side;
    Total total = Total::start();
    for (std::int64_t s = lane; k < n && s < splits; s += cuda::block / side)
        total.join(partial[s * n + k]);
    total = cuda::join_lanes(total, lane, cuda::block / side, side, JoinTotals());
    if (lane == 0 && k < n) finish.put(k, total);
}

// The state whose kernel computes S. With `opposite`, the kernel takes the opposites of elements, and
// stores the opposite of its result.
template <class S>
struct Computing {
    using type = S;
    static constexpr bool opposite = false;
};
template <class C, class I, bool places>
struct Computing<Extreme<C, I, false, places>> {
    using type = Extreme<C, I, true, places>;
    static constexpr bool opposite = true;
};
template <class C>
struct Computing<Truth<C, false>> {
    using type = Truth<C, true>;
    static constexpr bool opposite = true;
};

template <class State, class F, class T, class Finish, class A, class B>
void fold(const cuda::Call<F>& call, Tensor<const T> x, const Kept& shape, const Finish& finish,
          Into<A> first, Into<B> second) {
    using S = typename Computing<State>::type;
    using Total = typename S::Total;
    using Put = Finished<S, Finish, A, B>;
    const Put put = {finish, first.y, second.y, first.add, second.add, Computing<State>::opposite};
    const auto join = [&](std::int64_t n, const Total* partial, std::int64_t splits) {
        const std::int64_t across = cuda::ceil2(std::min<std::int64_t>(n, 32));
        call.launch(&join_splits_kernel<Total, Put>,
                    dim3(static_cast<unsigned>((n + across - 1) / across)), cuda::block, partial, n,
                    splits, across, put);
    };
    if (x.size() == 0) {
        const std::int64_t n = size_of(shape.shape());
        if (n > 0) join(n, nullptr, 0);
        return;
    }
    const cuda::Fold lanes(x.shape, [&](std::size_t d) { return shape.reduced(d); });
    Total* const partial = lanes.splits > 1 ? call.template scratch<Total>() : nullptr;
    call.launch(&fold_kernel<S, T, Put>,
                dim3(static_cast<unsigned>(lanes.blocks), static_cast<unsigned>(lanes.splits)),
                cuda::block, Folding<S, T, Put>{lanes, x.data, partial, put});
    if (partial != nullptr) join(lanes.kept.size, partial, lanes.splits);
}

template <class T, class P, class Q, class Rule>
struct Spreading : Rule {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const std::int64_t k = walk.locate(i);
        const Rule& rule = *this;
        cuda::store(gx[i], add != 0,
                    rule(cuda::load_as<C>(x[i]), cuda::load_as<C>(gy[k]), cuda::load_as<C>(p[k]),
                         q == nullptr ? C(0) : cuda::load_as<C>(q[k])));
    }
    cuda::Walk<1> walk;
    const T* x;
    const T* gy;
    const P* p;
    const Q* q;
    T* gx;
    std::int64_t add;
};
template <class F, class T, class P, class Q, class Rule>
void spread(const cuda::Call<F>& call, Tensor<const T> x, const Kept& kept, const T* gy, const P* p,
            const Q* q, const Rule& rule, T* gx, bool add) {
    Spreading<T, P, Q, Rule> spreading = {rule, {}, x.data, gy, p, q, gx, add};
    const Shape from = kept.shape();
    spreading.walk.build(x.shape, &from);
    cuda::each(call.queue(), x.size(), spreading);
}

}  // namespace catena::plugins

namespace catena::plugin::cuda {

template <class F>
    requires(F::folds)
struct Kernels<F> : F {
    template <class T, class... Others>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != CATENA_PHASE_FORWARD) return;
        const Shape x = call.template x<T>(0).shape;
        if (size_of(x) == 0) return;
        const Kept kept(x, call.template attr<"axis">());
        const Fold lanes(x, [&](std::size_t d) { return kept.reduced(d); });
        if (lanes.splits > 1)
            plan.scratch_bytes = static_cast<std::uint64_t>(lanes.splits * lanes.kept.size) *
                                 sizeof(typename F::template State<T>::Total);
    }
};

}  // namespace catena::plugin::cuda
