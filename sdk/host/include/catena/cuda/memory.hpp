// cuda: memory of a GPU as such.
#pragma once

#include <catena/cuda/device.hpp>

#include <cstdint>

namespace catena::cuda {

// Bytes of a GPU's memory, from its device's cache; given back to it with the last handle.
class Memory {
public:
    Memory() = default;
    explicit Memory(Array bytes) : bytes_(std::move(bytes)) {}

    // On the device: for kernels. Aligned to 64 bytes; null if there is none.
    void* data() const;
    std::int64_t size() const { return bytes_ ? bytes_.nbytes() : 0; }
    Device device() const { return bytes_ ? bytes_.device() : Device(); }
    // The same memory as uint8 (size,).
    const Array& array() const { return bytes_; }

private:
    Array bytes_;
};

// Uninitialised. Throws as get_gpu(), MemoryError, and InvalidError if nbytes is negative.
Memory mem_alloc(std::int64_t nbytes, const DeviceLike& device = {});

// What the cache of a GPU holds: see MemoryStats.
MemoryStats memory_stats(const DeviceLike& device = {});
// Gives what is cached and free back to the driver.
void release_cached(const DeviceLike& device = {});

}  // namespace catena::cuda
