// A slice of an array, on CUDA.
#pragma once

#include "get_item.hpp"
#include "strided.cuh"

namespace catena::plugins {

// The slice of x into the dense y, or y into that slice.
template <class T>
void move_slice(const auto& call, Direction direction, const Slices& slices, const T* from, T* to,
                bool add) {
    std::int64_t shape[CATENA_MAX_NDIM];
    std::int64_t strides[CATENA_MAX_NDIM][1];
    const std::size_t n = slices.n_axes();
    for (std::size_t d = 0; d < n; ++d) {
        shape[d] = slices.length(d);
        strides[d][0] = slices.stride(d);
    }
    if (direction == Direction::gather) from += slices.start();
    else to += slices.start();
    move_strided(call.queue(), direction, Shape(shape, n), strides, from, to, add);
}
template <class T>
void take_on_device(const auto& call, Tensor<const T> x, Tensor<T> y) {
    if (y.size() > 0)
        move_slice(call, Direction::gather, slices_of(call, x.shape), x.data, y.data, call.adds(0));
}
// y is null for zeros.
template <class T>
void put_on_device(const auto& call, Tensor<const T> y, Tensor<T> x) {
    const bool some = y && y.size() > 0;
    const bool whole = some && y.size() == x.size();
    if (!call.adds(0) && !whole) call.zero(x);
    if (some)
        move_slice(call, Direction::scatter, slices_of(call, x.shape), y.data, x.data,
                   call.adds(0));
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::GetItem> {
    template <class T>
    static void forward(const auto& call) {
        catena::plugins::take_on_device<T>(call, call.template x<T>(0), call.template y<T>(0));
    }
    template <class T>
    static void backward(const auto& call) {
        catena::plugins::put_on_device<T>(call, call.template gy<T>(0), call.template gx<T>(0));
    }
};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::PutItem> {
    template <class T>
    static void forward(const auto& call) {
        catena::plugins::put_on_device<T>(call, call.template x<T>(0), call.template y<T>(0));
    }
    template <class T>
    static void backward(const auto& call) {
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        if (gy) catena::plugins::take_on_device<T>(call, gy, gx);
        else if (!call.adds(0)) call.zero(gx);
    }
};
