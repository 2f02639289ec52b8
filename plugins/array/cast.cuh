// Conversion to another dtype, on CUDA: one kernel per input dtype. The output dtype is an
// argument, the same for all threads of a launch.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "cast.hpp"

namespace catena::plugins {

template <class From>
struct Converted {
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        with_type(AllTypes(), type, [&]<class To>(To) { put<To>(i); });
    }
    template <class To>
    __device__ __forceinline__ void put(std::int64_t i) const {
        using C = cuda::Compute<From>;
        const auto value = cuda::load_as<C>(x[i]);
        To* const to = static_cast<To*>(y) + i;
        if constexpr (is_half_type<To> && !std::is_same_v<C, float>)  // rounded once
            cuda::store(*to, add != 0, catena_to_float_odd(static_cast<double>(value)));
        else cuda::store(*to, add != 0, value);
    }
    const From* x;
    void* y;
    std::int32_t type, add;
};

template <class F, class From, class To>
void convert(const cuda::Call<F>& call, Tensor<const From> x, Tensor<To> y, bool add) {
    cuda::each(call.queue(), y.size(),
               Converted<From>{x.data, y.data, index_in(AllTypes(), dtype_of<To>()), add});
}

}  // namespace catena::plugins
