// Another dtype for the same numbers, on CUDA: a kernel for each dtype that is read. The one that is
// written is the same for a whole launch.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "cast.hpp"

namespace catena::plugins {

template <class From>
struct Converted {
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        with_type(AllTypes(), type, [&]<class To>(To) {
            cuda::store(static_cast<To*>(y)[i], add != 0, cuda::load_as<cuda::Compute<From>>(x[i]));
        });
    }
    const From* x;
    void* y;
    std::int32_t type, add;
};

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
        each(call.queue(), y.size(),
             catena::plugins::Converted<From>{x.data, y.data, index_in(AllTypes(), dtype_of<To>()),
                                              call.adds(0)});
    }
};
