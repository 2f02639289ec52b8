// Another dtype for the same numbers, on CUDA: a kernel for each dtype that is read. The one that is
// written is the same for a whole launch.
#pragma once

#include <catena/plugin/cuda/launch.cuh>

#include "cast.hpp"

namespace catena::plugins {

inline constexpr int cast_width = 8;  // elements that are converted together

template <class From>
__global__ void __launch_bounds__(cuda::block)
    cast_kernel(const From* x, void* y, int type, std::int64_t packs, std::int64_t n, bool add) {
    const auto convert = [=]<int w>(std::int64_t at, const std::integral_constant<int, w>&) {
        cuda::Compute<From> v[w];
        cuda::load_pack<w>(x + at, v);
        with_type(AllTypes(), type,
                  [&]<class To>(To) { cuda::store_pack(static_cast<To*>(y) + at, add, v); });
    };
    const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * cuda::block + threadIdx.x;
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * cuda::block;
    for (std::int64_t i = thread; i < packs; i += step)
        convert(i * cast_width, std::integral_constant<int, cast_width>());
    for (std::int64_t i = packs * cast_width + thread; i < n; i += step)
        convert(i, std::integral_constant<int, 1>());
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Cast> {
    static constexpr bool any_half = false;  // dtypes are passed on

    template <class T, class U>
    static void forward(const auto& call) {
        convert(call, call.template x<T>(0), call.template y<U>(0));
    }
    template <class T, class U>
    requires catena::plugins::is_float<T> && catena::plugins::is_float<U>
    static void backward(const auto& call) {
        if (const auto gy = call.template gy<U>(0)) convert(call, gy, call.template gx<T>(0));
        else if (!call.adds(0)) call.zero(call.template gx<T>(0));
    }

private:
    template <class From, class To>
    static void convert(const auto& call, Tensor<const From> x, Tensor<To> y) {
        constexpr int w = catena::plugins::cast_width;
        const bool aligned = is_aligned<From, w>(x.data) && is_aligned<To, w>(y.data);
        const std::int64_t packs = aligned ? y.size() / w : 0;
        call.launch_for(std::max(packs, y.size() - packs * w), &catena::plugins::cast_kernel<From>,
                        x.data, static_cast<void*>(y.data), index_in(AllTypes(), dtype_of<To>()),
                        packs, y.size(), call.adds(0));
    }
};
