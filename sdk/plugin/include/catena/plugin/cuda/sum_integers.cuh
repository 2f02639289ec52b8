// sum_to_shape() on CUDA for integers and bool of fewer than 64 bits, whose sums are int64.
#pragma once

#include "catena/plugin/cuda/reduce.cuh"

namespace catena::plugin::cuda {

template <class T>
struct AsInt64 : Operation<Types<T>, Types<std::int64_t>, std::int64_t> {
    using Value = std::int64_t;
    __device__ __forceinline__ void operator()(const Value* x, Value* y) const { y[0] = x[0]; }
};
// Needs scratch memory as the one for int64.
template <class F, class T>
    requires(!std::is_same_v<T, std::int64_t>)
void sum_to_shape(const Call<F>& call, const T* x, Shape from, std::int64_t* y, Shape to,
                  bool add) {
    const Operand in[] = {{x, from}};
    sum(call.queue(), AsInt64<T>(), from, in, 0, Repeats{from, to}, y, add,
        call.template scratch<void>());
}

}  // namespace catena::plugin::cuda
