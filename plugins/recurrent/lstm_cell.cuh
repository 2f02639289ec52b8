// The steps of long short-term memory on CUDA, with one thread per cell. In sequences each step,
// forward or backward, is a matrix product and a launch. One more product gives the gradient of W.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "lstm_cell.hpp"

namespace catena::plugins {

// The gates of cell p are at gate(p), `inner` elements apart.
CATENA_FN std::int64_t gates_of(std::int64_t p, std::int64_t inner) {
    return 4 * p - 3 * (p % inner);
}

template <class T>
struct LstmStepRule {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t p) const {
        const std::int64_t q = gates_of(p, s.inner);
        const auto reached = [&](int k) {
            const auto x = cuda::load_as<C>(s.x[q + k * s.inner]);
            return s.from_state == nullptr ? x
                                           : x + cuda::load_as<C>(s.from_state[q + k * s.inner]);
        };
        const auto v = LstmGates<C>{reached(0), reached(1), reached(2), reached(3)}.activated();
        const C cell = v.cell(s.c_prev == nullptr ? C(0) : cuda::load_as<C>(s.c_prev[p]));
        const C gates[4] = {v.a, v.i, v.f, v.o};
        CATENA_UNROLL
        for (int k = 0; k < 4; ++k)
            if (s.gates != nullptr) s.gates[q + k * s.inner] = cuda::store_as<T>(gates[k]);
        cuda::store(s.c[p], s.add_c != 0, cell);
        cuda::store(s.h[p], s.add_h != 0, v.hidden(math::tanh(cell)));
    }
    LstmStep<T> s;
};

template <class T>
struct LstmStepGradientRule {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t p) const {
        const std::int64_t q = gates_of(p, s.inner);
        const bool handed = p < s.rows_after * s.units;
        const auto value = [&](const T* from, bool there) {
            return there && from != nullptr ? cuda::load_as<C>(from[p]) : C(0);
        };
        const auto gate = [&](int k) { return cuda::load_as<C>(s.gates[q + k * s.inner]); };
        LstmGates<C> v = {gate(0), gate(1), gate(2), gate(3)};
        if (s.activated == 0) v = v.activated();
        const C gh = value(s.gh, true) + value(s.gh_after, handed);
        const C gc = value(s.gc, true) + (handed ? s.carried[p] : C(0));
        const C t = math::tanh(cuda::load_as<C>(s.c[p]));
        const C g = v.of_cell(gc, gh, t);
        const auto of = v.gradient(g, gh, t, value(s.c_prev, true));
        const C of_gates[4] = {of.a, of.i, of.f, of.o};
        CATENA_UNROLL
        for (int k = 0; k < 4; ++k)
            if (s.of_gates != nullptr)
                cuda::store(s.of_gates[q + k * s.inner], s.add_of_gates != 0, of_gates[k]);
        if (s.kept != nullptr) s.kept[p] = cuda::store_as<T>(value(s.h_prev, true));
        const C of_prev = g * v.f;
        if (s.gc0 != nullptr) cuda::store(s.gc0[p], s.add_gc0 != 0, of_prev);
        else if (s.carried != nullptr) s.carried[p] = of_prev;
    }
    LstmStepGradient<T> s;
};

template <class F, class T>
void run_step(const cuda::Call<F>& call, const LstmStep<T>& s) {
    cuda::each(call.queue(), s.rows * s.units * s.inner, LstmStepRule<T>{s});
}
template <class F, class T>
void run_step(const cuda::Call<F>& call, const LstmStepGradient<T>& s) {
    cuda::each(call.queue(), s.rows * s.units * s.inner, LstmStepGradientRule<T>{s});
}
template <class F, class T>
void put_elements(const cuda::Call<F>& call, const T* from, Tensor<T> to, bool add) {
    if (from != nullptr)
        cuda::map(call.queue(), cuda::Copy<T, T>(), to.shape, {cuda::Operand{from, to.shape}},
                  {cuda::Result{to.data, add}});
    else if (!add) call.zero(to);
}

}  // namespace catena::plugins
