// Axes in another order, on CUDA.
#pragma once

#include "strided.cuh"
#include "transpose.hpp"

namespace catena::plugins {

template <class F, class T>
void permute(const cuda::Call<F>& call, Tensor<const T> x, Tensor<T> y, bool inverted, bool add) {
    std::int64_t strides[CATENA_MAX_NDIM];
    permuted_strides(call, x, inverted, strides);
    if (y.size() > 0)
        move_strided(call.queue(), Direction::gather, y.shape, strides, x.data, y.data, add);
}

}  // namespace catena::plugins
