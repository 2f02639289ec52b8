// Running sums and products along an axis, on CUDA: the lanes of a line take adjacent elements, and
// combine them by steps of a power of two.
#pragma once

#include <catena/plugin/cuda/lines.cuh>

#include "fold.cuh"
#include "scan.hpp"

namespace catena::plugins {

// state -> p * state + q, the effect of one or more elements. A sum has no p, a product no q.
template <class Rule, class C>
struct Effect {
    static constexpr bool has_p = !std::is_same_v<Rule, RunningSum>;
    static constexpr bool has_q = !std::is_same_v<Rule, RunningProduct>;
    __device__ __forceinline__ C operator()(C state) const {
        if constexpr (!has_q) return p * state;
        else return (has_p ? p * state : state) + q;
    }
    __device__ __forceinline__ static Effect of(C x, C b, bool shifted) {
        if constexpr (!has_p) return {C(1), x};
        else return {x, has_q && shifted ? x * b : b};
    }
    __device__ __forceinline__ Effect after(const Effect& earlier) const {
        return {p * earlier.p, has_q ? (*this)(earlier.q) : q};
    }
    C p, q;
};

template <class Rule, class T, class Y>
__global__ void __launch_bounds__(cuda::block)
    scan_kernel(const cuda::Lines lines, const T* x, const T* b, Y* y, ScanMode mode, bool add) {
    using C = Factor<T>;
    __shared__ Effect<Rule, C> shared[cuda::block];
    const cuda::Line line(lines);
    const int t = static_cast<int>(threadIdx.x);
    const int last = t + (lines.lanes - 1 - line.lane) * line.step;
    C state = Rule::template start<C>();  // before the first lane's element
    for (std::int64_t first = 0; first < lines.length; first += lines.lanes) {
        const std::int64_t i = first + line.lane;
        const bool there = i < line.end;
        const std::int64_t at = there ? line.at(mode.reverse ? lines.length - 1 - i : i) : 0;
        const C own = there ? static_cast<C>(cuda::load_as<cuda::Compute<T>>(x[at])) : C(0);
        const C other = there ? static_cast<C>(cuda::load_as<cuda::Compute<T>>(b[at])) : C(0);
        Effect<Rule, C> all = Effect<Rule, C>::of(own, other, mode.shifted);
        for (int distance = 1; distance < lines.lanes; distance *= 2) {
            __syncthreads();
            shared[t] = all;
            __syncthreads();
            if (line.lane < distance) continue;
            all = all.after(shared[t - distance * line.step]);
        }
        __syncthreads();
        shared[t] = all;
        __syncthreads();
        const C before = line.lane == 0 ? state : shared[t - line.step](state);
        if (there)
            cuda::store(
                y[at], add,
                static_cast<cuda::Compute<Y>>(
                    mode.exclusive ? before : Rule::next(before, own, other, mode.shifted)));
        state = shared[last](state);
    }
}

template <class Rule, class F, class T, class Y>
void scan(const cuda::Call<F>& call, const Axis& axis, const T* x, const T* b, Y* y,
          const ScanMode& mode, bool add) {
    if (axis.count() * axis.length == 0) return;
    const cuda::Lines lines(axis);
    call.launch(&scan_kernel<Rule, T, Y>, lines.blocks(), cuda::block, lines, x, b, y, mode, add);
}

}  // namespace catena::plugins
