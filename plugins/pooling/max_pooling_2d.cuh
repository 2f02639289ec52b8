// Maxima over windows of images, on CUDA.
#pragma once

#include "max_pooling_2d.hpp"
#include "windows.cuh"

namespace catena::plugins {

// The cells of the maxima, in either of their types.
struct Cells {
    template <class M>
    static Cells of(M* data) {
        return {data, sizeof(M) == 1};
    }
    __device__ __forceinline__ std::uint32_t operator[](std::int64_t window) const {
        if (bytes != 0) return static_cast<const std::uint8_t*>(data)[window];
        return static_cast<const std::uint32_t*>(data)[window];
    }
    const void* data;
    std::int64_t bytes;
};

// The largest value and the first cell that has it; a NaN is larger than all.
template <class T>
struct TakeMaximum {
    using Value = cuda::Compute<T>;
    struct State {
        __device__ __forceinline__ void take(Value v, std::uint32_t here) {
            const bool wins = !(v <= best) && best == best;
            best = wins ? v : best;
            cell = wins ? here : cell;
        }
        __device__ __forceinline__ void join(const State& other) {
            const bool own_nan = math::isnan(best);
            const bool other_nan = math::isnan(other.best);
            const bool equal = own_nan == other_nan && (own_nan || best == other.best);
            const bool wins =
                equal ? other.cell < cell : other_nan || (!own_nan && other.best > best);
            if (wins) *this = other;
        }
        Value best;
        std::uint32_t cell;
    };
    static __device__ __forceinline__ Value outside() {
        return -std::numeric_limits<Value>::infinity();
    }
    __device__ __forceinline__ State begin(std::uint32_t cell) const { return {outside(), cell}; }
    __device__ __forceinline__ void store(std::int64_t window, const State& s) const {
        y[window] = add != 0 ? cuda::stored_sum(y[window], s.best) : cuda::store_as<T>(s.best);
        if (bytes != 0) static_cast<std::uint8_t*>(at)[window] = static_cast<std::uint8_t>(s.cell);
        else static_cast<std::uint32_t*>(at)[window] = s.cell;
    }
    T* y;
    void* at;
    std::int32_t bytes, add;
};

// Their gradient, for the cell that has the maximum. At: Cells, or bytes.
template <class T, class At>
struct GiveMaximum {
    using Value = cuda::Compute<T>;
    __device__ __forceinline__ Value of(std::int64_t window, std::uint32_t cell) const {
        return at[window] == cell ? cuda::load_as<Value>(gy[window]) : Value(0);
    }
    const T* gy;
    At at;
};

// y = x at the maxima, 0 for windows without; or added to y.
template <class T>
__global__ void __launch_bounds__(cuda::block)
    maxima_kernel(const Windows w, const cuda::Divider<std::uint32_t> by_ksize, const cuda::Box box,
                  const T* x, const Cells at, T* y, bool add) {
    using C = cuda::Compute<T>;
    for (std::uint32_t u = blockIdx.x * cuda::block + threadIdx.x; u < box.places;
         u += gridDim.x * cuda::block) {
        const auto o = box.locate(u);
        const std::int64_t window = (o.plane * w.y.count + o.row) * w.x.count + o.column;
        const std::uint32_t cell = at[window];
        const bool is_cell = cell < w.cells();
        const std::uint32_t down = is_cell ? by_ksize.quotient(cell) : 0;
        const std::int64_t row = o.row * w.y.stride - w.y.pad + down;
        const std::int64_t column =
            o.column * w.x.stride - w.x.pad + (cell - down * by_ksize.divisor());
        const bool within =
            is_cell && row >= 0 && row < w.y.extent && column >= 0 && column < w.x.extent;
        const C value =
            within ? cuda::load_as<C>(x[o.plane * w.image() + row * w.x.extent + column]) : C(0);
        y[window] = add ? cuda::stored_sum(y[window], value) : cuda::store_as<T>(value);
    }
}

// gx = gy at the maxima, 0 elsewhere; or added to gx. Without gy: zero.
template <class T, class M>
void scatter_on_device(const auto& call, Tensor<const T> gy, const M* at, Tensor<T> gx) {
    if (!gy) return call.adds(0) ? void() : call.zero(gx);
    const Windows w = windows_of(call, gx.shape, gy.shape);
    using Byte = const std::uint8_t*;
    const GiveMaximum<T, Byte> small = {gy.data, reinterpret_cast<Byte>(at)};
    const GiveMaximum<T, Cells> large = {gy.data, Cells::of(at)};
    give_pixels(call, w, sizeof(M) == 1 && is_small(w), small, large, gx.data, call.adds(0));
}
template <class T, class M>
void gather_on_device(const auto& call, Tensor<const T> x, const M* at, Tensor<T> y) {
    if (!x) return call.adds(0) ? void() : call.zero(y);
    const Windows w = windows_of(call, x.shape, y.shape);
    const cuda::Divider<std::uint32_t> by_ksize(static_cast<std::uint32_t>(w.x.ksize));
    cuda::for_each_box(w.planes, w.y.count, w.x.count, [&](const cuda::Box& box) {
        call.launch_for(box.places, &maxima_kernel<T>, w, by_ksize, box, x.data, Cells::of(at),
                        y.data, call.adds(0));
    });
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::MaxPooling2D> {
    template <class T, class M>
    static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        const catena::plugins::TakeMaximum<T> rule = {y.data, call.template y<M>(1).data,
                                                      sizeof(M) == 1, call.adds(0)};
        take_windows(call, windows_of(call, x.shape, y.shape), x.data, rule);
    }
    template <class T, class M>
    static void backward(const auto& call) {
        catena::plugins::scatter_on_device(call, call.template gy<T>(0), call.template y<M>(1).data,
                                           call.template gx<T>(0));
    }
};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::MaxPooling2DGrad> {
    template <class T, class M>
    static void forward(const auto& call) {
        catena::plugins::scatter_on_device(call, call.template x<T>(0), call.template x<M>(1).data,
                                           call.template y<T>(0));
    }
    template <class T, class M>
    static void backward(const auto& call) {
        catena::plugins::gather_on_device(call, call.template gy<T>(0), call.template x<M>(1).data,
                                          call.template gx<T>(0));
    }
};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::MaxPooling2DAt> {
    template <class T, class M>
    static void forward(const auto& call) {
        catena::plugins::gather_on_device(call, call.template x<T>(0), call.template x<M>(1).data,
                                          call.template y<T>(0));
    }
    template <class T, class M>
    static void backward(const auto& call) {
        catena::plugins::scatter_on_device(call, call.template gy<T>(0), call.template x<M>(1).data,
                                           call.template gx<T>(0));
    }
};
