// Long short-term memory over sequences, on CUDA: for each step a product, and a launch with a thread for
// each cell, forward as backward; then one product for the gradient of W.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "lstm_sequence.hpp"

namespace catena::plugins {

inline constexpr int lstm_block = 128;  // a step has few cells: small blocks reach more processors

// packed: all gates of a cell are loaded and stored together.
template <class T>
__global__ void __launch_bounds__(lstm_block)
    lstm_step_kernel(const LstmStep<T> s, bool packed_x, bool packed) {
    using C = cuda::Compute<T>;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * lstm_block;
    for (std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * lstm_block + threadIdx.x;
         p < s.rows * s.units; p += step) {
        C x[4], more[4] = {};
        cuda::load<4>(s.x + 4 * p, packed_x, 4, x);
        if (s.from_state != nullptr) cuda::load<4>(s.from_state + 4 * p, packed, 4, more);
        const C c_prev = s.c_prev == nullptr ? C(0) : cuda::load_as<C>(s.c_prev[p]);
        const auto v = LstmGates<C>{x[0] + more[0], x[1] + more[1], x[2] + more[2], x[3] + more[3]}
                           .activated();
        const C cell = v.cell(c_prev);
        const C gates[4] = {v.a, v.i, v.f, v.o};
        cuda::store(s.gates + 4 * p, packed, 4, false, gates);
        s.c[p] = cuda::store_as<T>(cell);
        s.h[p] = cuda::store_as<T>(v.hidden(math::tanh(cell)));
    }
}

template <class T>
__global__ void __launch_bounds__(lstm_block)
    lstm_step_gradient_kernel(const LstmStepGradient<T> s, bool packed, bool packed_gradient) {
    using C = cuda::Compute<T>;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * lstm_block;
    for (std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * lstm_block + threadIdx.x;
         p < s.rows * s.units; p += step) {
        const bool handed = p < s.rows_after * s.units;
        const auto value = [&](const T* from, bool there) {
            return there && from != nullptr ? cuda::load_as<C>(from[p]) : C(0);
        };
        C x[4];
        cuda::load<4>(s.gates + 4 * p, packed, 4, x);
        const LstmGates<C> v = {x[0], x[1], x[2], x[3]};
        const C gh = value(s.gh, true) + value(s.gh_after, handed);
        const C gc = value(s.gc, true) + (handed ? s.carried[p] : C(0));
        const C t = math::tanh(cuda::load_as<C>(s.c[p]));
        const C g = v.of_cell(gc, gh, t);
        const auto of = v.gradient(g, gh, t, value(s.c_prev, true));
        const C of_gates[4] = {of.a, of.i, of.f, of.o};
        cuda::store(s.of_gates + 4 * p, packed_gradient, 4, false, of_gates);
        if (s.kept != nullptr) s.kept[p] = cuda::store_as<T>(value(s.h_prev, true));
        const C of_prev = g * v.f;
        if (s.gc0 != nullptr)
            s.gc0[p] =
                s.add_gc0 != 0 ? cuda::stored_sum(s.gc0[p], of_prev) : cuda::store_as<T>(of_prev);
        else if (s.carried != nullptr) s.carried[p] = of_prev;
    }
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::LstmSequence> {
    static constexpr bool any_half = false;  // dtypes are passed on

    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        catena::plugins::LstmSequence::plan<T>(call, plan);
    }
    template <class T>
    static void forward(const auto& call) {
        catena::plugins::LstmSequence::run_forward<T>(call, OnCuda(call));
    }
    template <class T>
    static void backward(const auto& call) {
        catena::plugins::LstmSequence::run_backward<T>(call, OnCuda(call));
    }

private:
    template <class Call>
    class OnCuda {
    public:
        explicit OnCuda(const Call& call) : call_(call) {}

        template <class T>
        void run(const catena::plugins::LstmStep<T>& s) const {
            launch(&catena::plugins::lstm_step_kernel<T>, s, is_aligned<T, 4>(s.x),
                   is_aligned<T, 4>(s.gates));
        }
        template <class T>
        void run(const catena::plugins::LstmStepGradient<T>& s) const {
            launch(&catena::plugins::lstm_step_gradient_kernel<T>, s, is_aligned<T, 4>(s.gates),
                   is_aligned<T, 4>(s.of_gates));
        }
        template <class T>
        void add(std::int64_t n, const T* from, T* to) const {
            map(call_.queue(), Copy<T, T>(), Shape(&n, 1), {Operand{from, Shape(&n, 1)}},
                {Result{to, true}});
        }
        template <class T>
        void zero(std::int64_t n, T* to) const {
            call_.queue().zero(to, static_cast<std::size_t>(n) * sizeof(T));
        }

    private:
        template <class Step>
        void launch(void (*kernel)(Step, bool, bool), const Step& s, bool a, bool b) const {
            constexpr int threads = catena::plugins::lstm_block;
            if (const std::int64_t n = s.rows * s.units; n > 0)
                call_.launch(kernel, call_.queue().grid(n * (block / threads)), threads, s, a, b);
        }

        const Call& call_;
    };
};
