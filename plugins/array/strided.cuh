// Copies between a dense array and elements of another array at given strides, on CUDA.
// Permutations of axes are such copies.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "transpose.hpp"

namespace catena::plugins {

enum class Direction { gather, scatter };  // to the dense array, from the dense array

template <class T>
struct Strided {
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        const std::int64_t at = walk.locate(i);
        cuda::store(to[scatters ? at : i], add != 0,
                    cuda::load_as<cuda::Compute<T>>(from[scatters ? i : at]));
    }
    cuda::Walk<1> walk;  // from indices of the dense array to offsets in the other
    const T* from;
    T* to;
    std::int32_t scatters, add;
};

// Copies or adds elements between a dense array of `shape` and another array, where strides[d] is
// the distance between neighbours along axis d, in elements. No extent may be 0.
template <class T>
void move_strided(const cuda::Queue& queue, Direction direction, Shape shape,
                  const std::int64_t* strides, const T* from, T* to, bool add) {
    Strided<T> p = {{}, from, to, direction == Direction::scatter, add};
    std::int64_t of_operand[CATENA_MAX_NDIM][1];
    for (std::size_t d = 0; d < shape.size(); ++d) of_operand[d][0] = strides[d];
    p.walk.build_strided(shape, of_operand);
    cuda::each(queue, p.walk.size, p);
}

template <class F, class T>
void permute(const cuda::Call<F>& call, Tensor<const T> x, Tensor<T> y, bool inverted, bool add) {
    std::int64_t strides[CATENA_MAX_NDIM];
    permuted_strides(call, x, inverted, strides);
    if (y.size() > 0)
        move_strided(call.queue(), Direction::gather, y.shape, strides, x.data, y.data, add);
}

}  // namespace catena::plugins
