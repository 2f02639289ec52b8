// Means over windows of images, on CUDA.
#pragma once

#include "average_pooling_2d.hpp"
#include "windows.cuh"

namespace catena::plugins {

// The sum of the cells, times a share; in short runs, so that many cells make no large error.
template <class T>
struct TakeMean {
    using Value = cuda::Compute<T>;
    struct State {
        __device__ __forceinline__ void take(Value v, std::uint32_t) {
            run += v;
            if (++length < 32) return;
            sum += run;
            run = 0;
            length = 0;
        }
        __device__ __forceinline__ void join(const State& other) {
            sum = total() + other.total();
            run = 0;
        }
        __device__ __forceinline__ Value total() const { return sum + run; }
        Value sum, run;
        std::int32_t length;
    };
    static __device__ __forceinline__ Value outside() { return 0; }
    __device__ __forceinline__ State begin(std::uint32_t) const { return {0, 0, 0}; }
    __device__ __forceinline__ void store(std::int64_t window, const State& s) const {
        const Value mean = s.total() * static_cast<Value>(share);
        y[window] = add != 0 ? cuda::stored_sum(y[window], mean) : cuda::store_as<T>(mean);
    }
    T* y;
    double share;
    std::int64_t add;
};

// Each cell gets a share of its window's gradient.
template <class T>
struct GiveShare {
    using Value = cuda::Compute<T>;
    __device__ __forceinline__ Value of(std::int64_t window, std::uint32_t) const {
        return cuda::load_as<Value>(gy[window]) * static_cast<Value>(share);
    }
    const T* gy;
    double share;
};

template <class T>
double share_of(const Windows& w) {
    using C = cuda::Compute<T>;
    return C(1) / static_cast<C>(w.cells());
}
template <class T>
void average_on_device(const auto& call, Tensor<const T> x, Tensor<T> y) {
    if (!x) return call.adds(0) ? void() : call.zero(y);
    const Windows w = windows_of(call, x.shape, y.shape);
    take_windows(call, w, x.data, TakeMean<T>{y.data, share_of<T>(w), call.adds(0)});
}
template <class T>
void spread_on_device(const auto& call, Tensor<const T> gy, Tensor<T> gx) {
    if (!gy) return call.adds(0) ? void() : call.zero(gx);
    const Windows w = windows_of(call, gx.shape, gy.shape);
    const GiveShare<T> rule = {gy.data, share_of<T>(w)};
    give_pixels(call, w, is_small(w), rule, rule, gx.data, call.adds(0));
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
