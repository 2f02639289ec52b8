// Arrays on GPUs.
#include <catena/core/error.hpp>
#include <catena/cuda/array.hpp>

#include <fmt/format.h>

namespace catena::cuda {
namespace {

const Array& need(const char* what, const Array& array) {
    if (array) return array;
    throw InvalidError(fmt::format("[{}] array: expected an array, got an empty handle", what));
}

Device home_or_current(const char* what, const Array& array) {
    const Device home = need(what, array).device();
    return is_gpu(home) ? home : get_gpu(what);
}

}  // namespace

Array to_gpu(const Array& array, const DeviceLike& device) {
    if (is_gpu(need("to_gpu", array).device())) return array;
    return array.to(get_gpu("to_gpu", device));
}

Array to_cpu(const Array& array) {
    return is_gpu(need("to_cpu", array).device()) ? array.to(host()) : array;
}

Array copy(const Array& array, const CopyTarget& target) {
    const Device from = need("copy", array).device();
    if (target.out) {
        target.out.copy_from(array);
        return target.out;
    }
    const Device device =
        target.out_device.is_nothing() ? from : get_gpu("copy", target.out_device);
    return device == from ? array.copy() : array.to(device);
}

Array empty(const Shape& shape, Dtype dtype) {
    return Array::empty(shape, dtype, get_gpu("empty"));
}
Array full(const Shape& shape, double value, Dtype dtype) {
    return Array::full(shape, value, dtype, get_gpu("full"));
}
Array zeros(const Shape& shape, Dtype dtype) {
    return Array::zeros(shape, dtype, get_gpu("zeros"));
}
Array ones(const Shape& shape, Dtype dtype) { return Array::ones(shape, dtype, get_gpu("ones")); }

Array empty_like(const Array& array) {
    const Device device = home_or_current("empty_like", array);
    return Array::empty(array.shape(), array.dtype(), device);
}
Array full_like(const Array& array, double value) {
    const Device device = home_or_current("full_like", array);
    return Array::full(array.shape(), value, array.dtype(), device);
}
Array zeros_like(const Array& array) { return full_like(array, 0); }
Array ones_like(const Array& array) { return full_like(array, 1); }

}  // namespace catena::cuda
