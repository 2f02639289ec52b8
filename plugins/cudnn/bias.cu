// This plugin's own kernels, for all dtypes: they add a bias, and sum its gradient.
#include "library.hpp"

#include <catena/plugin/cuda/reduce.cuh>

namespace catena_cudnn {
namespace {

using Floats = Row<float, double, cuda::AnyHalf>;

// Calls body(T()) with T of the tensor's dtype, one of those that the kernels are listed for.
template <class Body>
void with_type(const catena_tensor& t, const Body& body) {
    const int bits = t.dl.dtype.bits;
    catena::plugin::with_type(Floats(), bits == 32 ? 0 : bits == 64 ? 1 : 2, body);
}
cuda::Queue queue_of(const catena_call& call, const catena_tensor& t) {
    return cuda::queue_of(call.function->name, call, same(t.dl.dtype, dtype_of<BFloat16>()));
}

bool all_but_channels(std::size_t d) { return d != 1; }

}  // namespace

void add_bias(const catena_call& call, const catena_tensor& b, catena_tensor& y) {
    const std::int64_t shape[] = {shape_of(b)[0], 1, 1};
    with_type(y, [&]<class T>(T) {
        cuda::map(queue_of(call, y), cuda::Copy<T, T, true>(), shape_of(y),
                  {cuda::Operand{data_of<T>(b), Shape(shape)}},
                  {cuda::Result{data_of<T>(y), true}});
    });
}

std::uint64_t sum_channels_scratch(const catena_tensor& images) {
    std::uint64_t bytes = 0;
    with_type(images, [&]<class T>(T) {
        bytes = cuda::sum_scratch<T>(shape_of(images), all_but_channels);
    });
    return bytes;
}

void sum_channels(const catena_call& call, const catena_tensor& images, catena_tensor& sums,
                  bool add, void* scratch) {
    with_type(images, [&]<class T>(T) {
        cuda::sum(queue_of(call, images), view<const T>(&images), all_but_channels,
                  data_of<T>(sums), add, scratch);
    });
}

}  // namespace catena_cudnn
