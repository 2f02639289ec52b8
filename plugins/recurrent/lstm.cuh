// Long short-term memory, on CUDA: one thread per cell.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "lstm.hpp"

namespace catena::plugins {

// The inputs of a call. The four gates of cell p lie in x from gate(p) on, `inner` elements apart.
template <class T>
struct LstmCells {
    using C = cuda::Compute<T>;
    explicit LstmCells(const auto& call) {
        const auto of_cells = call.template x<T>(0);
        const auto of_gates = call.template x<T>(1);
        c_prev = of_cells.data;
        x = of_gates.data;
        inner = size_of(of_cells.shape.subspan(2));
        all = of_cells.size();
        own = of_gates.shape[0] * of_cells.shape[1] * inner;
    }
    __device__ __forceinline__ std::int64_t gate(std::int64_t p) const {
        return 4 * p - 3 * (p % inner);
    }
    __device__ __forceinline__ LstmGates<C> load(std::int64_t p) const {
        const T* const q = x + gate(p);
        return LstmGates<C>{cuda::load_as<C>(q[0]), cuda::load_as<C>(q[inner]),
                            cuda::load_as<C>(q[2 * inner]), cuda::load_as<C>(q[3 * inner])}
            .activated();
    }
    const T* c_prev;
    const T* x;
    std::int64_t inner;
    std::int64_t own;  // number of cells in the rows of x
    std::int64_t all;  // number of all cells, including rows that x lacks
};

template <class T>
struct LstmForward {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t p) const {
        const auto prev = cuda::load_as<C>(cells.c_prev[p]);
        if (p >= cells.own) return cuda::store(c[p], add_c != 0, prev);
        const auto gates = cells.load(p);
        const C cell = gates.cell(prev);
        cuda::store(c[p], add_c != 0, cell);
        cuda::store(h[p], add_h != 0, gates.hidden(math::tanh(cell)));
    }
    LstmCells<T> cells;
    T* c;
    T* h;
    std::int32_t add_c, add_h;
};

// A null gc or gh counts as zero. A null gprev or gx is not wanted.
template <class T>
struct LstmBackward {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t p) const {
        const C of_c = gc == nullptr ? C(0) : cuda::load_as<C>(gc[p]);
        if (p >= cells.own) {
            if (gprev != nullptr) cuda::store(gprev[p], add_prev != 0, of_c);
            return;
        }
        const auto gates = cells.load(p);
        const C t = math::tanh(cuda::load_as<C>(c[p]));
        const C of_h = gh == nullptr ? C(0) : cuda::load_as<C>(gh[p]);
        const C g = gates.of_cell(of_c, of_h, t);
        if (gprev != nullptr) cuda::store(gprev[p], add_prev != 0, g * gates.f);
        if (gx == nullptr) return;
        const auto of = gates.gradient(g, of_h, t, cuda::load_as<C>(cells.c_prev[p]));
        T* const q = gx + cells.gate(p);
        cuda::store(q[0], add_x != 0, of.a);
        cuda::store(q[cells.inner], add_x != 0, of.i);
        cuda::store(q[2 * cells.inner], add_x != 0, of.f);
        cuda::store(q[3 * cells.inner], add_x != 0, of.o);
    }
    LstmCells<T> cells;
    const T* c;
    const T* gc;
    const T* gh;
    T* gprev;
    T* gx;
    std::int32_t add_prev, add_x;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Lstm> {
    template <class T>
    static void forward(const auto& call) {
        const catena::plugins::LstmCells<T> cells(call);
        each(call.queue(), cells.all,
             catena::plugins::LstmForward<T>{cells, call.template y<T>(0).data,
                                             call.template y<T>(1).data, call.adds(0),
                                             call.adds(1)});
    }
    template <class T>
    static void backward(const auto& call) {
        const catena::plugins::LstmCells<T> cells(call);
        each(call.queue(), cells.all,
             catena::plugins::LstmBackward<T>{
                 cells, call.template y<T>(0).data, call.template gy<T>(0).data,
                 call.template gy<T>(1).data, call.template gx<T>(0).data,
                 call.template gx<T>(1).data, call.adds(0), call.adds(1)});
    }
};
