// Long short-term memory, on CUDA: a thread for each cell.
#pragma once

#include <catena/plugin/cuda/pack.cuh>

#include "lstm.hpp"

namespace catena::plugins {

// The cells of a call, and where their gates are: those of cell p begin at gate(p).
struct LstmCells {
    std::int64_t own;    // cells in the rows that x has
    std::int64_t all;    // and with those beyond
    std::int64_t inner;  // the step from a gate to the next
    std::int32_t packed_x, packed_gx;

    __device__ __forceinline__ std::int64_t gate(std::int64_t p) const {
        return inner == 1 ? 4 * p : 4 * p - 3 * (p % inner);
    }
};
template <class T, class C>
__device__ __forceinline__ void load_gates(const LstmCells& cells, const T* x, std::int64_t p,
                                           C (&v)[4]) {
    const T* const q = x + cells.gate(p);
    if (cells.packed_x) {
        cuda::load<4>(q, true, 4, v);
    } else {
        CATENA_UNROLL
        for (int k = 0; k < 4; ++k) v[k] = cuda::load_as<C>(q[k * cells.inner]);
    }
}
template <class T, class C>
__device__ __forceinline__ void put(T* to, std::int64_t p, bool add, C value) {
    to[p] = add ? cuda::stored_sum(to[p], value) : cuda::store_as<T>(value);
}

template <class T>
__global__ void __launch_bounds__(cuda::block)
    lstm_kernel(const LstmCells cells, const T* c_prev, const T* x, T* c, bool add_c, T* h,
                bool add_h) {
    using C = cuda::Compute<T>;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * cuda::block;
    for (std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * cuda::block + threadIdx.x;
         p < cells.all; p += step) {
        const C prev = cuda::load_as<C>(c_prev[p]);
        if (p >= cells.own) {
            put(c, p, add_c, prev);
            continue;
        }
        C v[4];
        load_gates(cells, x, p, v);
        const auto gates = LstmGates<C>{v[0], v[1], v[2], v[3]}.activated();
        const C cell = gates.cell(prev);
        put(c, p, add_c, cell);
        put(h, p, add_h, gates.hidden(math::tanh(cell)));
    }
}

// gc, gh: null for zero. gprev, gx: null where not wanted.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    lstm_gradient_kernel(const LstmCells cells, const T* c_prev, const T* x, const T* c,
                         const T* gc, const T* gh, T* gprev, bool add_prev, T* gx, bool add_x) {
    using C = cuda::Compute<T>;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * cuda::block;
    for (std::int64_t p = static_cast<std::int64_t>(blockIdx.x) * cuda::block + threadIdx.x;
         p < cells.all; p += step) {
        const C of_c = gc == nullptr ? C(0) : cuda::load_as<C>(gc[p]);
        if (p >= cells.own) {
            if (gprev != nullptr) put(gprev, p, add_prev, of_c);
            continue;
        }
        C v[4];
        load_gates(cells, x, p, v);
        const auto gates = LstmGates<C>{v[0], v[1], v[2], v[3]}.activated();
        const C t = math::tanh(cuda::load_as<C>(c[p]));
        const C of_h = gh == nullptr ? C(0) : cuda::load_as<C>(gh[p]);
        const C g = gates.of_cell(of_c, of_h, t);
        if (gprev != nullptr) put(gprev, p, add_prev, g * gates.f);
        if (gx == nullptr) continue;
        const auto of = gates.gradient(g, of_h, t, cuda::load_as<C>(c_prev[p]));
        const C of_x[4] = {of.a, of.i, of.f, of.o};
        T* const q = gx + cells.gate(p);
        if (cells.packed_gx) {
            cuda::store(q, true, 4, add_x, of_x);
        } else {
            CATENA_UNROLL
            for (int k = 0; k < 4; ++k) put(q, k * cells.inner, add_x, of_x[k]);
        }
    }
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Lstm> {
    template <class T>
    static void forward(const auto& call) {
        const auto c_prev = call.template x<T>(0);
        const auto x = call.template x<T>(1);
        const auto cells = cells_of<T>(c_prev.shape, x, x);
        call.launch_for(cells.all, &catena::plugins::lstm_kernel<T>, cells, c_prev.data, x.data,
                        call.template y<T>(0).data, call.adds(0), call.template y<T>(1).data,
                        call.adds(1));
    }
    template <class T>
    static void backward(const auto& call) {
        const auto c_prev = call.template x<T>(0);
        const auto x = call.template x<T>(1);
        const auto gx = call.template gx<T>(1);
        const auto cells = cells_of<T>(c_prev.shape, x, {gx.data, gx.shape});
        call.launch_for(cells.all, &catena::plugins::lstm_gradient_kernel<T>, cells, c_prev.data,
                        x.data, call.template y<T>(0).data, call.template gy<T>(0).data,
                        call.template gy<T>(1).data, call.template gx<T>(0).data, call.adds(0),
                        gx.data, call.adds(1));
    }

private:
    template <class T>
    static catena::plugins::LstmCells cells_of(Shape c, Tensor<const T> x, Tensor<const T> gx) {
        const std::int64_t inner = size_of(c.subspan(2));
        return {.own = x.dim(0) * c[1] * inner,
                .all = size_of(c),
                .inner = inner,
                .packed_x = inner == 1 && is_aligned<T, 4>(x.data),
                .packed_gx = inner == 1 && is_aligned<T, 4>(gx.data)};
    }
};
