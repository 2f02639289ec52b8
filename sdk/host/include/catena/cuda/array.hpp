// cuda: arrays on GPUs, and copies between GPU and host.
#pragma once

#include <catena/cuda/device.hpp>
#include <catena/link.hpp>

namespace catena::cuda {

using GPUArray = Array;  // Chainer's name; an Array knows its device

// Copies an array to a GPU. An array that is already on any GPU is returned unchanged; use copy()
// to copy between GPUs. Throws the errors of get_gpu().
Array to_gpu(const Array& array, const DeviceLike& device = {});
// Copies an array to the host. An array that is not on a GPU is returned unchanged.
Array to_cpu(const Array& array);

// Moves a link, which may be on another GPU, and returns it: see Link::to(). A temporary is
// returned by value: Mlp replica = cuda::to_gpu(deep_copy(model), 1);
template <class L>
requires std::derived_from<std::remove_cvref_t<L>, Link> L to_gpu(L&& link,
                                                                  const DeviceLike& device = {}) {
    link.to_gpu(device);
    return std::forward<L>(link);
}
template <class L>
requires std::derived_from<std::remove_cvref_t<L>, Link> L to_cpu(L&& link) {
    link.to_cpu();
    return std::forward<L>(link);
}

// The destination of copy(): out, which must have the array's shape and dtype; or new memory on
// out_device; or, by default, on the array's own device.
struct CopyTarget {
    Array out = {};
    DeviceLike out_device = {};
};
// Copies an array: cuda::copy(x, {.out_device = 1}). The result is out or new memory, never x.
// Throws the errors of get_gpu(), and ShapeError if out does not match.
Array copy(const Array& array, const CopyTarget& target = {});

// New arrays on the current GPU, get_device(). empty() is uninitialized.
Array empty(const Shape& shape, Dtype dtype = Dtype::float32);
Array full(const Shape& shape, double value, Dtype dtype = Dtype::float32);
Array zeros(const Shape& shape, Dtype dtype = Dtype::float32);
Array ones(const Shape& shape, Dtype dtype = Dtype::float32);
// The same with the shape and dtype of another array, on its GPU, or on the current GPU if it is
// not on one.
Array empty_like(const Array& array);
Array full_like(const Array& array, double value);
inline Array zeros_like(const Array& array) { return full_like(array, 0); }
inline Array ones_like(const Array& array) { return full_like(array, 1); }

}  // namespace catena::cuda
