// New arrays, on CUDA.
#pragma once

#include <catena/plugin/cuda/elementwise.cuh>

#include "full.hpp"

namespace catena::plugins {

template <class T, class Rule>
struct FillEach {
    __device__ __forceinline__ void operator()(std::int64_t i) const {
        cuda::store(y[i], add != 0, static_cast<cuda::Compute<T>>(rule(i)));
    }
    T* y;
    Rule rule;
    std::int64_t add;
};
template <class F, class T, class Rule>
void fill_each(const cuda::Call<F>& call, Tensor<T> y, const Rule& rule) {
    cuda::each(call.queue(), y.size(), FillEach<T, Rule>{y.data, rule, call.adds(0)});
}

}  // namespace catena::plugins
