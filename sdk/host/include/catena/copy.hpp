// F::copy: to a device.
#pragma once

#include <catena/core/variable.hpp>

#include <string_view>

namespace catena::functions {

// x in new memory on a device, which may be its own; the gradient is copied back to x's.
Variable copy(const Variable& x, Device device);
Array copy(const Array& x, Device device);
// The device by name, as Device::get() knows it: F::copy(x, "cpu:1").
inline Variable copy(const Variable& x, std::string_view device) {
    return copy(x, Device::get(device));
}
inline Array copy(const Array& x, std::string_view device) { return copy(x, Device::get(device)); }
// Copies to the GPU of that number, as cuda::get_device() knows it: F::copy(x, 1); -1 is the host, as in
// Chainer. Without a GPU an x on the host is copied within host memory, so that a program for several
// GPUs runs on the host. Throws DeviceError if there is no such GPU.
Variable copy(const Variable& x, int gpu);
Array copy(const Array& x, int gpu);

}  // namespace catena::functions
