// Means over windows of images, on CUDA.
#pragma once

#include "average_pooling_2d.hpp"
#include "windows.cuh"

namespace catena::plugins {

// Sets y to the sum of a window's cells times `share`. Short runs limit the rounding error.
template <class T>
struct TakeMean {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t window) const {
        C sum = 0;
        C run = 0;
        int length = 0;
        for_each_cell(w, window, [&](std::int64_t at, std::uint32_t) {
            run += cuda::load_as<C>(x[at]);
            if (++length < 32) return;
            sum += run;
            run = 0;
            length = 0;
        });
        cuda::store(y[window], add != 0, (sum + run) * share);
    }
    Windows w;
    const T* x;
    T* y;
    C share;
    std::int32_t add;
};

// Sets a pixel's gradient to the sum of its shares of the gradients of the windows that cover it.
template <class T>
struct GiveShare {
    using C = cuda::Compute<T>;
    __device__ __forceinline__ void operator()(std::int64_t pixel) const {
        C sum = 0;
        for_each_cover(w, pixel, [&](std::int64_t window, std::uint32_t) {
            sum += cuda::load_as<C>(gy[window]) * share;
        });
        cuda::store(gx[pixel], add != 0, sum);
    }
    Windows w;
    const T* gy;
    T* gx;
    C share;
    std::int32_t add;
};

template <class F, class T>
void average(const cuda::Call<F>& call, const Tensor<const T>& x, const Tensor<T>& y, bool add) {
    using C = cuda::Compute<T>;
    const Windows w = windows_of(call, x.shape, y.shape);
    cuda::each(call.queue(), y.size(),
               TakeMean<T>{w, x.data, y.data, C(1) / static_cast<C>(w.cells()), add});
}
template <class F, class T>
void spread(const cuda::Call<F>& call, const Tensor<const T>& gy, const Tensor<T>& gx, bool add) {
    using C = cuda::Compute<T>;
    const Windows w = windows_of(call, gx.shape, gy.shape);
    cuda::each(call.queue(), gx.size(),
               GiveShare<T>{w, gy.data, gx.data, C(1) / static_cast<C>(w.cells()), add});
}

}  // namespace catena::plugins
