// Few bytes from the host into an array.
#pragma once

#include <catena/core/array.hpp>

namespace catena {

// Fills it in the order of the thread's current stream. The bytes go with launches, so that nobody waits,
// and nothing has to be kept until the device has read them.
void write_bytes(const Array& array, const void* bytes);

}  // namespace catena
