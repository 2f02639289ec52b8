// Maxima over windows of images, on CUDA.
#pragma once

#include "max_pooling_2d.hpp"
#include "windows.cuh"

namespace catena::plugins {

// The numbers of the cells that have the maxima, as 8-bit or 32-bit integers.
struct Cells {
    template <class M>
    explicit Cells(M* cells)
        : data(const_cast<std::remove_const_t<M>*>(cells)), bytes(sizeof(M) == 1) {}
    __device__ __forceinline__ std::uint32_t operator[](std::int64_t window) const {
        if (bytes != 0) return static_cast<const std::uint8_t*>(data)[window];
        return static_cast<const std::uint32_t*>(data)[window];
    }
    __device__ __forceinline__ void set(std::int64_t window, std::uint32_t cell) const {
        if (bytes != 0) static_cast<std::uint8_t*>(data)[window] = static_cast<std::uint8_t>(cell);
        else static_cast<std::uint32_t*>(data)[window] = cell;
    }
    void* data;
    std::int64_t bytes;
};

// Finds a window's largest value and the first cell that has it. A NaN counts as the largest.
template <class T>
struct TakeMaximum {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t window) const {
        C best = -std::numeric_limits<C>::infinity();
        std::uint32_t first = ~std::uint32_t{0};  // for a window without cells
        for_each_cell(w, window, [&](std::int64_t at, std::uint32_t cell) {
            const auto v = cuda::load_as<C>(x[at]);
            const bool wins = first == ~std::uint32_t{0} || (!(v <= best) && best == best);
            best = wins ? v : best;
            first = wins ? cell : first;
        });
        cuda::store(y[window], add != 0, best);
        cells.set(window, first);
    }
    Windows w;
    const T* x;
    T* y;
    Cells cells;
    std::int64_t add;
};

// Sets a pixel's gradient to the sum of the gradients of the windows whose maximum it is.
template <class T>
struct GiveMaximum {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t pixel) const {
        C sum = 0;
        for_each_cover(w, pixel, [&](std::int64_t window, std::uint32_t cell) {
            if (cells[window] == cell) sum += cuda::load_as<C>(gy[window]);
        });
        cuda::store(gx[pixel], add != 0, sum);
    }
    Windows w;
    const T* gy;
    T* gx;
    Cells cells;
    std::int64_t add;
};

// Sets y to x at the maxima, and to 0 for windows without one; or adds these values to y.
template <class T>
struct AtMaximum {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t window) const {
        const Place o(window, w.y.count, w.x.count);
        const std::int64_t cell = cells[window];
        const std::int64_t row = o.row * w.y.stride - w.y.pad + cell / w.x.ksize;
        const std::int64_t column = o.column * w.x.stride - w.x.pad + cell % w.x.ksize;
        const bool within =
            cell < w.cells() && row >= 0 && row < w.y.extent && column >= 0 && column < w.x.extent;
        cuda::store(
            y[window], add != 0,
            within ? cuda::load_as<C>(x[o.plane * w.image() + row * w.x.extent + column]) : C(0));
    }
    Windows w;
    const T* x;
    T* y;
    Cells cells;
    std::int64_t add;
};

template <class F, class T, class M>
void maxima(const cuda::Call<F>& call, const Tensor<const T>& x, const Tensor<T>& y, M* at,
            bool add) {
    cuda::each(call.queue(), y.size(),
               TakeMaximum<T>{windows_of(call, x.shape, y.shape), x.data, y.data, Cells(at), add});
}
template <class F, class T, class M>
void scatter(const cuda::Call<F>& call, const Tensor<const T>& gy, const M* at, const Tensor<T>& gx,
             bool add) {
    cuda::each(
        call.queue(), gx.size(),
        GiveMaximum<T>{windows_of(call, gx.shape, gy.shape), gy.data, gx.data, Cells(at), add});
}
template <class F, class T, class M>
void gather(const cuda::Call<F>& call, const Tensor<const T>& x, const M* at, const Tensor<T>& y,
            bool add) {
    cuda::each(call.queue(), y.size(),
               AtMaximum<T>{windows_of(call, x.shape, y.shape), x.data, y.data, Cells(at), add});
}

}  // namespace catena::plugins
