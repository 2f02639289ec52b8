// Conversion to another dtype, on CUDA: one kernel per input dtype. The output dtype is an
// argument, the same for all threads of a launch.
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

template <class F, class From, class To>
void convert(const cuda::Call<F>& call, Tensor<const From> x, Tensor<To> y, bool add) {
    cuda::each(call.queue(), y.size(),
               Converted<From>{x.data, y.data, index_in(AllTypes(), dtype_of<To>()), add});
}

}  // namespace catena::plugins
