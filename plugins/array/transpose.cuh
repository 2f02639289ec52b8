// Axes in another order, on CUDA.
#pragma once

#include "strided.cuh"
#include "transpose.hpp"

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Transpose> {
    template <class T>
    static void forward(const auto& call) {
        permute(call, call.template x<T>(0), call.template y<T>(0), false);
    }
    template <class T>
    static void backward(const auto& call) {
        const auto gx = call.template gx<T>(0);
        if (const auto gy = call.template gy<T>(0)) permute(call, gy, gx, true);
        else if (!call.adds(0)) call.zero(gx);
    }

private:
    // y's axis d is x's axis axes[d]; the other way round if inverted.
    template <class T>
    static void permute(const auto& call, Tensor<const T> x, Tensor<T> y, bool inverted) {
        const std::size_t n = y.ndim();
        const Ints axes = call.template attr<"axes">();
        std::int64_t strides[CATENA_MAX_NDIM][1];
        for (std::size_t d = 0; d < n; ++d) {
            const std::size_t from = axes.empty() ? n - 1 - d : axis_index(axes[d], n);
            if (inverted) strides[from][0] = x.count(d + 1, n);
            else strides[d][0] = x.count(from + 1, n);
        }
        if (y.size() > 0)
            catena::plugins::move_strided(call.queue(), catena::plugins::Direction::gather, y.shape,
                                          strides, x.data, y.data, call.adds(0));
    }
};
