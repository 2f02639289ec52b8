// F::copy: copies to a device.
#pragma once

#include <catena/core/variable.hpp>

namespace catena::functions {

// Copies x into new memory on a device, which may be its own. The gradient is copied back to the
// device of x.
Variable copy(const Variable& x, Device device);
Array copy(const Array& x, Device device);
// The same with the name of a device, as in Device::get(): F::copy(x, "cpu:1").
inline Variable copy(const Variable& x, std::string_view device) {
    return copy(x, Device::get(device));
}
inline Array copy(const Array& x, std::string_view device) { return copy(x, Device::get(device)); }
// Copies to the GPU with this number, as in cuda::get_device(): F::copy(x, 1). -1 is the host, as
// in Chainer. On a machine without a GPU, an x on the host is copied within host memory, so
// programs for several GPUs run on the host. Throws DeviceError if there is no such GPU.
Variable copy(const Variable& x, int gpu);
Array copy(const Array& x, int gpu);

}  // namespace catena::functions
