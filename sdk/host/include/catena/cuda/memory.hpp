// cuda: raw GPU memory.
#pragma once

#include <catena/cuda/device.hpp>

namespace catena::cuda {

// Bytes of GPU memory from the device's cache, released with the last handle.
class Memory {
public:
    Memory() = default;
    explicit Memory(Array bytes) : bytes_(std::move(bytes)) {}

    // The address on the device, for kernels. Aligned to 64 bytes; null if empty.
    void* data() const;
    std::int64_t size() const { return bytes_ ? bytes_.nbytes() : 0; }
    Device device() const { return bytes_ ? bytes_.device() : Device(); }
    // The same memory as uint8 (size,).
    const Array& array() const { return bytes_; }

private:
    Array bytes_;
};

// Uninitialized. Throws the errors of get_gpu(), MemoryError, and InvalidError if nbytes is
// negative.
Memory mem_alloc(std::int64_t nbytes, const DeviceLike& device = {});

// Statistics of a GPU's memory cache: see MemoryStats.
MemoryStats memory_stats(const DeviceLike& device = {});
// Releases cached memory to the driver.
void release_cached(const DeviceLike& device = {});

}  // namespace catena::cuda
