// A slice of an array, on CUDA.
#pragma once

#include "get_item.hpp"
#include "strided.cuh"

namespace catena::plugins {

// Copies or adds a slice to a dense array (gather), or a dense array to a slice (scatter).
template <class T>
void move_slice(const auto& call, Direction direction, const Slices& slices, const T* from, T* to,
                bool add) {
    if (size_of(slices.shape()) == 0) return;
    std::int64_t shape[CATENA_MAX_NDIM];
    std::int64_t strides[CATENA_MAX_NDIM];
    const std::size_t n = slices.n_axes();
    for (std::size_t d = 0; d < n; ++d) {
        shape[d] = slices.length(d);
        strides[d] = slices.stride(d);
    }
    if (direction == Direction::gather) from += slices.start();
    else to += slices.start();
    move_strided(call.queue(), direction, Shape(shape, n), strides, from, to, add);
}
template <class F, class T>
void take_slice(const cuda::Call<F>& call, const Slices& slices, const T* x, T* y, bool add) {
    move_slice(call, Direction::gather, slices, x, y, add);
}
template <class F, class T>
void write_slice(const cuda::Call<F>& call, const Slices& slices, const T* y, T* x, bool add) {
    move_slice(call, Direction::scatter, slices, y, x, add);
}
template <class F, class T>
void fill_zeros(const cuda::Call<F>& call, Tensor<T> x) {
    call.zero(x);
}

}  // namespace catena::plugins
