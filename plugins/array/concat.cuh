// Concatenation of arrays along an axis, and its gradient, on CUDA: one launch per input.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "concat.hpp"

namespace catena::plugins {

// Returns the offset in the whole array of element i of a part that starts at `begin` on the axis.
// extent, whole: extents of the part and of the whole array on the axis; inner: stride of the axis.
__device__ __forceinline__ std::int64_t place_in_whole(std::int64_t i, std::int64_t begin,
                                                       std::int64_t extent, std::int64_t whole,
                                                       std::int64_t inner) {
    const std::int64_t row = i / (extent * inner);
    return i + (row * (whole - extent) + begin) * inner;
}

// Copies or adds x to its part of y, and stores x's end along the axis in *ends.
template <class T>
struct Joined {
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        if (i == 0) *ends = end;
        if (i < n)
            cuda::store(y[place_in_whole(i, end - extent, extent, whole, inner)], add != 0,
                        cuda::load_as<cuda::Compute<T>>(x[i]));
    }
    const T* x;
    T* y;
    std::int64_t* ends;
    std::int64_t end, n, extent, whole, inner, add;
};
// Copies or adds gx's part of gy to gx; *ends is the part's end along the axis.
template <class T>
struct Parted {
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        cuda::store(gx[i], add != 0,
                    cuda::load_as<cuda::Compute<T>>(
                        gy[place_in_whole(i, *ends - extent, extent, whole, inner)]));
    }
    const T* gy;
    T* gx;
    const std::int64_t* ends;
    std::int64_t extent, whole, inner, add;
};

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Concat> {
    template <class T, class>
    static void forward(const auto& call) {
        const auto y = call.template y<T>(0);
        std::int64_t* const ends = call.template y<std::int64_t>(1).data;
        const std::size_t axis = axis_index(call.template attr<"axis">(), y.ndim());
        const std::int64_t inner = y.count(axis + 1, y.ndim());
        std::int64_t end = 0;
        for (std::size_t i = 0; i < call.raw().n_x; ++i) {
            const auto x = call.template x<T>(i);
            end += x.dim(axis);
            // At least one thread must run: it stores the end of x.
            each(call.queue(), std::max<std::int64_t>(x.size(), 1),
                 catena::plugins::Joined<T>{.x = x.data,
                                            .y = y.data,
                                            .ends = ends + i,
                                            .end = end,
                                            .n = x.size(),
                                            .extent = x.dim(axis),
                                            .whole = y.dim(axis),
                                            .inner = inner,
                                            .add = call.adds(0)});
        }
    }
    // The host does not know where inputs begin, as inputs whose gradient is not wanted have no
    // shape here. The kernels read it from `ends`.
    template <class T, class>
    static void backward(const auto& call) {
        const auto gy = call.template gy<T>(0);
        const std::int64_t* const ends = call.template y<std::int64_t>(1).data;
        for (std::size_t i = 0; i < call.raw().n_x; ++i) {
            const auto gx = call.template gx<T>(i);
            if (!gx || gx.size() == 0) continue;
            const std::size_t axis = axis_index(call.template attr<"axis">(), gx.ndim());
            each(call.queue(), gx.size(),
                 catena::plugins::Parted<T>{.gy = gy.data,
                                            .gx = gx.data,
                                            .ends = ends + i,
                                            .extent = gx.dim(axis),
                                            .whole = gy.dim(axis),
                                            .inner = gx.count(axis + 1, gx.ndim()),
                                            .add = call.adds(i)});
        }
    }
};
