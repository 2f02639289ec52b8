// Long short-term memory over sequences, on CUDA: each step, forward or backward, is a matrix
// product and a launch with one thread per cell. One more product gives the gradient of W.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "lstm_sequence.hpp"

namespace catena::plugins {

template <class T>
struct LstmStepRule {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t p) const {
        const auto reached = [&](int k) {
            const auto x = cuda::load_as<C>(s.x[4 * p + k]);
            return s.from_state == nullptr ? x : x + cuda::load_as<C>(s.from_state[4 * p + k]);
        };
        const auto v = LstmGates<C>{reached(0), reached(1), reached(2), reached(3)}.activated();
        const C cell = v.cell(s.c_prev == nullptr ? C(0) : cuda::load_as<C>(s.c_prev[p]));
        const C gates[4] = {v.a, v.i, v.f, v.o};
        CATENA_UNROLL
        for (int k = 0; k < 4; ++k) s.gates[4 * p + k] = cuda::store_as<T>(gates[k]);
        s.c[p] = cuda::store_as<T>(cell);
        s.h[p] = cuda::store_as<T>(v.hidden(math::tanh(cell)));
    }
    LstmStep<T> s;
};

template <class T>
struct LstmStepGradientRule {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t p) const {
        const bool handed = p < s.rows_after * s.units;
        const auto value = [&](const T* from, bool there) {
            return there && from != nullptr ? cuda::load_as<C>(from[p]) : C(0);
        };
        const auto gate = [&](int k) { return cuda::load_as<C>(s.gates[4 * p + k]); };
        const LstmGates<C> v = {gate(0), gate(1), gate(2), gate(3)};
        const C gh = value(s.gh, true) + value(s.gh_after, handed);
        const C gc = value(s.gc, true) + (handed ? s.carried[p] : C(0));
        const C t = math::tanh(cuda::load_as<C>(s.c[p]));
        const C g = v.of_cell(gc, gh, t);
        const auto of = v.gradient(g, gh, t, value(s.c_prev, true));
        const C of_gates[4] = {of.a, of.i, of.f, of.o};
        CATENA_UNROLL
        for (int k = 0; k < 4; ++k) s.of_gates[4 * p + k] = cuda::store_as<T>(of_gates[k]);
        if (s.kept != nullptr) s.kept[p] = cuda::store_as<T>(value(s.h_prev, true));
        const C of_prev = g * v.f;
        if (s.gc0 != nullptr) cuda::store(s.gc0[p], s.add_gc0 != 0, of_prev);
        else if (s.carried != nullptr) s.carried[p] = of_prev;
    }
    LstmStepGradient<T> s;
};

template <class F, class T>
void run_step(const cuda::Call<F>& call, const LstmStep<T>& s) {
    cuda::each(call.queue(), s.rows * s.units, LstmStepRule<T>{s});
}
template <class F, class T>
void run_step(const cuda::Call<F>& call, const LstmStepGradient<T>& s) {
    cuda::each(call.queue(), s.rows * s.units, LstmStepGradientRule<T>{s});
}
template <class F, class T>
void add_elements(const cuda::Call<F>& call, const T* from, Tensor<T> to) {
    cuda::map(call.queue(), cuda::Copy<T, T>(), to.shape, {cuda::Operand{from, to.shape}},
              {cuda::Result{to.data, true}});
}
template <class F, class T>
void zero_elements(const cuda::Call<F>& call, Tensor<T> to) {
    call.zero(to);
}

}  // namespace catena::plugins
