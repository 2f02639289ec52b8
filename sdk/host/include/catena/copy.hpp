// F::copy: to a device.
#pragma once

#include <catena/core/variable.hpp>

namespace catena::functions {

// x in new memory on a device, which may be its own; the gradient is copied back to x's.
Variable copy(const Variable& x, Device device);
Array copy(const Array& x, Device device);

}  // namespace catena::functions
