// Means over windows of images, on CUDA.
#pragma once

#include "average_pooling_2d.hpp"
#include "windows.cuh"

namespace catena::plugins {

// The sum of the cells, times a share; in short runs, so that many cells make no large error.
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

// Each cell gets a share of its window's gradient.
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

template <class T>
void average_on_device(const auto& call, Tensor<const T> x, Tensor<T> y) {
    using C = cuda::Compute<T>;
    if (!x) return call.adds(0) ? void() : call.zero(y);
    const Windows w = windows_of(call, x.shape, y.shape);
    cuda::each(call.queue(), y.size(),
               TakeMean<T>{w, x.data, y.data, C(1) / static_cast<C>(w.cells()), call.adds(0)});
}
template <class T>
void spread_on_device(const auto& call, Tensor<const T> gy, Tensor<T> gx) {
    using C = cuda::Compute<T>;
    if (!gy) return call.adds(0) ? void() : call.zero(gx);
    const Windows w = windows_of(call, gx.shape, gy.shape);
    cuda::each(call.queue(), gx.size(),
               GiveShare<T>{w, gy.data, gx.data, C(1) / static_cast<C>(w.cells()), call.adds(0)});
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::AveragePooling2D> {
    template <class T>
    static void forward(const auto& call) {
        catena::plugins::average_on_device(call, call.template x<T>(0), call.template y<T>(0));
    }
    template <class T>
    static void backward(const auto& call) {
        catena::plugins::spread_on_device(call, call.template gy<T>(0), call.template gx<T>(0));
    }
};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::AveragePooling2DGrad> {
    template <class T>
    static void forward(const auto& call) {
        catena::plugins::spread_on_device(call, call.template x<T>(0), call.template y<T>(0));
    }
    template <class T>
    static void backward(const auto& call) {
        catena::plugins::average_on_device(call, call.template gy<T>(0), call.template gx<T>(0));
    }
};
