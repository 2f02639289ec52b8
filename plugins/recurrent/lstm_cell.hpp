// A cell of long short-term memory: one set of formulas for all devices and for compositions.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// One number per gate: its input, its activated value, or a gradient.
template <class C>
struct LstmGates {
    C a, i, f, o;

    CATENA_FN LstmGates activated() const {
        return {math::tanh(a), math::sigmoid(i), math::sigmoid(f), math::sigmoid(o)};
    }
    // These functions take activated gates; t is tanh(c).
    CATENA_FN C cell(const C& c_prev) const { return a * i + f * c_prev; }
    CATENA_FN C hidden(const C& t) const { return o * t; }
    // Returns the gradient of c, including the part through h.
    CATENA_FN C of_cell(const C& gc, const C& gh, const C& t) const {
        return gc + gh * o * (C(1) - t * t);
    }
    // Returns the gradients of the gates' inputs; g is the result of of_cell().
    CATENA_FN LstmGates gradient(const C& g, const C& gh, const C& t, const C& c_prev) const {
        return {g * i * (C(1) - a * a), g * a * (i * (C(1) - i)), g * c_prev * (f * (C(1) - f)),
                gh * t * (o * (C(1) - o))};
    }
};

// Gates of up to `most` adjacent cells, on the CPU. In memory, the gates of a cell lie `step`
// elements apart; with step 1, each cell has four contiguous elements.
template <class T>
struct LstmRun {
    static constexpr std::int64_t most = 64;

    CATENA_KERNEL LstmGates<T> operator[](std::int64_t k) const {
        return {gate[0][k], gate[1][k], gate[2][k], gate[3][k]};
    }
    CATENA_KERNEL void set(std::int64_t k, const LstmGates<T>& v) {
        gate[0][k] = v.a, gate[1][k] = v.i, gate[2][k] = v.f, gate[3][k] = v.o;
    }
    CATENA_KERNEL void load(const T* x, std::int64_t step, std::int64_t n) {
        if (step == 1) {
            CATENA_LOOP
            for (std::int64_t k = 0; k < n; ++k)
                set(k, {x[4 * k], x[4 * k + 1], x[4 * k + 2], x[4 * k + 3]});
        } else {
            for (std::int64_t g = 0; g < 4; ++g) std::copy_n(x + g * step, n, gate[g]);
        }
    }
    CATENA_KERNEL void store(T* x, std::int64_t step, std::int64_t n, bool add) const {
        if (step == 1) {
            CATENA_LOOP
            for (std::int64_t k = 0; k < n; ++k)
                for (std::int64_t g = 0; g < 4; ++g)
                    x[4 * k + g] = (add ? x[4 * k + g] : T(0)) + gate[g][k];
        } else {
            for (std::int64_t g = 0; g < 4; ++g) put(x + g * step, gate[g], n, add);
        }
    }
    CATENA_KERNEL static void put(T* to, const T* from, std::int64_t n, bool add) {
        if (!add) return void(std::copy_n(from, n, to));
        CATENA_LOOP
        for (std::int64_t k = 0; k < n; ++k) to[k] += from[k];
    }
    // Copies n elements, or writes zeros if `from` is null.
    CATENA_KERNEL static void get(T* to, const T* from, std::int64_t n) {
        if (from == nullptr) std::fill_n(to, n, T(0));
        else std::copy_n(from, n, to);
    }

    T gate[4][most];  // a, i, f, o
};

// The gates' inputs in x (N, 4 units, ...). A template, so that nvcc does not instantiate it: CUDA
// sources do not compose Vars.
LstmGates<Var> gates_in(const auto& x) {
    List cells = list_of(x.meta().shape());
    cells[1] /= 4;
    List gates = cells;
    gates.insert(gates.begin() + 2, 4);
    const Var apart = reshape(x, gates);
    const auto gate = [&](std::int64_t k) { return reshape(slice(apart, 2, k, k + 1), cells); };
    return {gate(0), gate(1), gate(2), gate(3)};
}

// Cells (N, units, ...) and their gates (N, 4 units, ...).
struct LstmLayout {
    LstmLayout(Shape c, Shape x) : rows(x[0]), units(c[1]), inner(size_of(c.subspan(2))) {}
    LstmLayout(std::int64_t n, std::int64_t n_units, std::int64_t n_inner)
        : rows(n), units(n_units), inner(n_inner) {}
    // Calls body(p, q, n), in parallel, for runs of n cells from cell p on, with gates from x[q] on.
    template <class Call, class Body>
    void for_each_run(const Call& call, const Body& body) const {
        constexpr std::int64_t most = LstmRun<float>::most;
        const std::int64_t line = inner == 1 ? units : inner;
        const std::int64_t lines = inner == 1 ? rows : rows * units;
        const std::int64_t pieces = (line + most - 1) / most;
        auto run = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t u = begin; u < end; ++u) {
                const std::int64_t first = u % pieces * most;
                const std::int64_t p = u / pieces * line;
                body(p + first, 4 * p + (inner == 1 ? 4 * first : first),
                     std::min(most, line - first));
            }
        };
        parallel<Call::isa>(call.context(), lines * pieces, 16 * std::min(line, most), run);
    }

    std::int64_t rows;  // of x
    std::int64_t units;
    std::int64_t inner;
};

// The type in which gradients of cells are accumulated over the steps.
template <class T>
using LstmSum = std::conditional_t<sizeof(T) < sizeof(float), float, T>;

// The cells of a step. A null input counts as zeros; a null result is not wanted.
template <class T>
struct LstmStep {
    std::int64_t rows, units, inner = 1;
    const T* x;                     // a, i, f, o
    const T* from_state = nullptr;  // added to x; may be the memory of `gates`
    const T* c_prev;
    T* gates = nullptr;  // activated
    T* c;
    T* h;
    std::int64_t add_c = 0, add_h = 0;
};
template <class T>
struct LstmStepGradient {
    std::int64_t rows, units, inner = 1;
    std::int64_t rows_after = 0;  // rows for which the next step has left gradients
    std::int64_t activated = 1;   // whether gates are
    const T* gates;
    const T* c;
    const T* c_prev;
    const T* h_prev = nullptr;
    const T* gh;  // gradients of this step's outputs
    const T* gc;
    const T* gh_after = nullptr;
    LstmSum<T>* carried = nullptr;  // gradient of c: from the next step, then for the previous one
    T* of_gates;
    T* kept = nullptr;  // receives a copy of h_prev
    T* gc0;             // gradient of c0, in the first step
    std::int64_t add_gc0, add_of_gates = 0;
};

// The operations of a step on a device; overloaded for CUDA.
template <class T>
CATENA_KERNEL void run_step(const auto& call, const LstmStep<T>& s) {
    const LstmLayout at(s.rows, s.units, s.inner);
    at.for_each_run(call, [&](std::int64_t p, std::int64_t q, std::int64_t n) CATENA_LAMBDA {
        LstmRun<T> gates;
        LstmRun<T> more;
        T prev[LstmRun<T>::most];
        T cells[LstmRun<T>::most];
        T hidden[LstmRun<T>::most];
        gates.load(s.x + q, s.inner, n);
        if (s.from_state != nullptr) {
            more.load(s.from_state + q, s.inner, n);
            CATENA_LOOP
            for (std::int64_t k = 0; k < n; ++k) {
                const LstmGates<T> v = gates[k], w = more[k];
                gates.set(k, {v.a + w.a, v.i + w.i, v.f + w.f, v.o + w.o});
            }
        }
        LstmRun<T>::get(prev, s.c_prev == nullptr ? nullptr : s.c_prev + p, n);
        CATENA_LOOP
        for (std::int64_t k = 0; k < n; ++k) {
            const LstmGates<T> v = gates[k].activated();
            cells[k] = v.cell(prev[k]);
            gates.set(k, v);
            hidden[k] = v.hidden(math::tanh(cells[k]));
        }
        LstmRun<T>::put(s.c + p, cells, n, s.add_c != 0);
        LstmRun<T>::put(s.h + p, hidden, n, s.add_h != 0);
        if (s.gates != nullptr) gates.store(s.gates + q, s.inner, n, false);
    });
}
template <class T>
CATENA_KERNEL void run_step(const auto& call, const LstmStepGradient<T>& s) {
    const std::int64_t cells_after = s.rows_after * s.units;
    const LstmLayout at(s.rows, s.units, s.inner);
    at.for_each_run(call, [&](std::int64_t p, std::int64_t q, std::int64_t n) CATENA_LAMBDA {
        const bool handed = p < cells_after;  // the same for a whole run, which is in one row
        LstmRun<T> gates;
        T prev[LstmRun<T>::most];
        T gh[LstmRun<T>::most], gh_after[LstmRun<T>::most];
        T gc[LstmRun<T>::most], gc_after[LstmRun<T>::most];
        gates.load(s.gates + q, s.inner, n);
        if (s.activated == 0) {
            CATENA_LOOP
            for (std::int64_t k = 0; k < n; ++k) gates.set(k, gates[k].activated());
        }
        LstmRun<T>::get(prev, s.c_prev == nullptr ? nullptr : s.c_prev + p, n);
        LstmRun<T>::get(gh, s.gh == nullptr ? nullptr : s.gh + p, n);
        LstmRun<T>::get(gc, s.gc == nullptr ? nullptr : s.gc + p, n);
        LstmRun<T>::get(gh_after, handed ? s.gh_after + p : nullptr, n);
        LstmRun<T>::get(gc_after, handed ? s.carried + p : nullptr, n);
        const T* const c = s.c + p;
        CATENA_LOOP
        for (std::int64_t k = 0; k < n; ++k) {
            const LstmGates<T> v = gates[k];
            const T t = math::tanh(c[k]);
            const T of_h = gh[k] + gh_after[k];
            const T g = v.of_cell(gc[k] + gc_after[k], of_h, t);
            gates.set(k, v.gradient(g, of_h, t, prev[k]));
            gc[k] = g * v.f;
        }
        if (s.of_gates != nullptr) gates.store(s.of_gates + q, s.inner, n, s.add_of_gates != 0);
        if (s.kept != nullptr)
            LstmRun<T>::get(s.kept + p, s.h_prev == nullptr ? nullptr : s.h_prev + p, n);
        if (s.gc0 != nullptr) LstmRun<T>::put(s.gc0 + p, gc, n, s.add_gc0 != 0);
        else if (s.carried != nullptr) LstmRun<T>::put(s.carried + p, gc, n, false);
    });
}
// Copies elements, or adds them; a null `from` counts as zeros.
template <class T>
CATENA_KERNEL void put_elements(const auto& call, const T* from, Tensor<T> to, bool add) {
    call.parallel(to.size(), 1, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        const std::int64_t n = end - begin;
        if (from != nullptr) LstmRun<T>::put(to.data + begin, from + begin, n, add);
        else if (!add) std::fill_n(to.data + begin, n, T(0));
    });
}

}  // namespace catena::plugins
