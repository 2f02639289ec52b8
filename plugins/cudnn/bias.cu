// The kernels of this plugin's own, for all dtypes.
#include "bias.hpp"

#include <catena/plugin/cuda/reduce.cuh>

namespace catena_cudnn {
namespace {

using Floats = Row<float, double, cuda::AnyHalf>;

// body(T()) of the tensor's dtype, which supports() has checked.
template <class Body>
void with_type(const catena_tensor& t, const Body& body) {
    const int bits = t.dl.dtype.bits;
    catena::plugin::with_type(Floats(), bits == 32 ? 0 : bits == 64 ? 1 : 2, body);
}
cuda::Queue queue_of(const catena_call& call, const catena_tensor& t) {
    return cuda::queue_of(call.function->name, call, same(t.dl.dtype, dtype_of<BFloat16>()));
}

bool all_but_channels(std::size_t d) { return d != 1; }

template <class T>
__global__ void __launch_bounds__(cuda::block) scale_kernel(T* values, std::int64_t n, T factor) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n;
         i += step)
        values[i] *= factor;
}

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

void scale(const catena_call& call, catena_tensor& values, double factor) {
    const cuda::Queue queue = queue_of(call, values);
    const std::int64_t n = size_of(values);
    if (values.dl.dtype.bits == 64)
        queue.launch(&scale_kernel<double>, queue.grid(n), cuda::block, data_of<double>(values), n,
                     factor);
    else
        queue.launch(&scale_kernel<float>, queue.grid(n), cuda::block, data_of<float>(values), n,
                     static_cast<float>(factor));
}

}  // namespace catena_cudnn
