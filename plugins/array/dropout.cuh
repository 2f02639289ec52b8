// Dropout, on CUDA: the same draws for the same seed as on the CPU.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "dropout.hpp"

namespace catena::plugins {

template <class C>
__device__ __forceinline__ C meet_on_device(std::uint8_t fate, C x, C scale) {
    const C survivor = x * (fate == scaled ? scale : C(1));
    return fate == dropped ? C(0) : survivor;
}
// y = x through a mask.
template <class T>
struct Masked {
    using In = cuda::Types<T, std::uint8_t>;
    using Out = cuda::Types<T>;
    using Value = cuda::Compute<T>;
    static constexpr bool walks = false;
    __device__ __forceinline__ void operator()(const Value* in, Value* y) const {
        y[0] = meet_on_device(static_cast<std::uint8_t>(in[1]), in[0], scale);
    }
    Value scale;
};

// A thread takes neighbouring blocks of draws, and with them packs of elements, 64 apart (see
// Dropout::forward).
inline constexpr int dropout_width = 4;
template <class T>
__global__ void __launch_bounds__(cuda::block)
    dropout_kernel(std::int64_t n, std::int64_t units, std::uint64_t seed, std::uint64_t offset,
                   std::uint32_t limit, cuda::Compute<T> scale, const T* x, std::uint8_t* mask,
                   T* y, bool aligned, bool add) {
    using C = cuda::Compute<T>;
    constexpr int w = dropout_width;
    static_assert(philox_lanes % w == 0);
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * cuda::block;
    for (std::int64_t u = static_cast<std::int64_t>(blockIdx.x) * cuda::block + threadIdx.x;
         u < units; u += step) {
        const std::int64_t b = u * w;
        Philox4 draws[w];
        CATENA_UNROLL
        for (int j = 0; j < w; ++j)
            draws[j] = philox(seed, offset + static_cast<std::uint64_t>(b + j));
        const std::int64_t first = b / philox_lanes * (4 * philox_lanes) + b % philox_lanes;
        CATENA_UNROLL
        for (int k = 0; k < 4; ++k) {
            const std::int64_t e = first + k * philox_lanes;
            if (e >= n) continue;
            const int count = n - e < w ? static_cast<int>(n - e) : w;
            const bool whole = aligned && count == w;
            std::uint8_t fate[w];
            C v[w];
            cuda::load<w>(x + e, whole, count, v);
            CATENA_UNROLL
            for (int j = 0; j < w; ++j) {
                fate[j] = draws[j].v[k] < limit ? dropped : scaled;
                v[j] = meet_on_device(fate[j], v[j], scale);
            }
            cuda::store(mask + e, whole, count, false, fate);
            cuda::store(y + e, whole, count, add, v);
        }
    }
}

template <class T>
cuda::Compute<T> dropout_scale(const auto& call) {
    using C = cuda::Compute<T>;
    return C(1) / (C(1) - static_cast<C>(call.template attr<"ratio">()));
}
template <class T>
void mask_on_device(const auto& call, Tensor<const T> x, const std::uint8_t* mask, Tensor<T> y) {
    cuda::map(call.queue(), Masked<T>{dropout_scale<T>(call)}, y.shape,
              {cuda::Operand{x.data, x.shape}, {mask, x.shape}},
              {cuda::Result{y.data, call.adds(0)}});
}

}  // namespace catena::plugins

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::ApplyDropout> {
    template <class T, class>
    static void forward(const auto& call) {
        catena::plugins::mask_on_device(call, call.template x<T>(0),
                                        call.template x<std::uint8_t>(1).data,
                                        call.template y<T>(0));
    }
    template <class T, class>
    static void backward(const auto& call) {
        if (const auto gy = call.template gy<T>(0))
            catena::plugins::mask_on_device(call, gy, call.template x<std::uint8_t>(1).data,
                                            call.template gx<T>(0));
        else if (!call.adds(0)) call.zero(call.template gx<T>(0));
    }
};

template <>
struct catena::plugin::cuda::Kernels<catena::plugins::Dropout> {
    template <class T, class>
    static void forward(const auto& call) {
        using namespace catena::plugins;
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        std::uint8_t* const mask = call.template y<std::uint8_t>(1).data;
        const double ratio = call.template attr<"ratio">();
        const std::int64_t n = x.size();
        if (!call.train() || ratio == 0) {
            call.queue().fill(mask, kept, static_cast<std::size_t>(n));
            return mask_on_device<T>(call, x, mask, y);
        }
        constexpr std::int64_t group = 4 * philox_lanes;
        const std::int64_t blocks = (n + group - 1) / group * philox_lanes;
        std::uint64_t seed = 0;
        std::uint64_t offset = 0;
        if (const catena_status status =
                host().philox(call.context(), static_cast<std::uint64_t>(blocks), &seed, &offset);
            status != CATENA_OK)
            throw Error(status);
        constexpr int w = dropout_width;
        const bool aligned = is_aligned<T, w>(x.data) && is_aligned<T, w>(y.data) &&
                             is_aligned<std::uint8_t, w>(mask);
        call.launch_for(blocks / w, &dropout_kernel<T>, n, blocks / w, seed, offset,
                        static_cast<std::uint32_t>(ratio * 0x1p32), dropout_scale<T>(call), x.data,
                        mask, y.data, aligned, call.adds(0));
    }
    template <class T, class>
    static void backward(const auto& call) {
        const auto gx = call.template gx<T>(0);
        const std::uint8_t* const mask = call.template y<std::uint8_t>(1).data;
        if (const auto gy = call.template gy<T>(0))
            catena::plugins::mask_on_device(call, gy, mask, gx);
        else if (!call.adds(0)) call.zero(gx);
    }
};
