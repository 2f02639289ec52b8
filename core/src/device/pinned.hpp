// Host memory that a device reads and writes by itself, kept for the next array: making it is slow.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace catena {

class DeviceState;
class Queue;

class PinnedPool {
public:
    using Uses = std::vector<std::pair<Queue*, std::uint64_t>>;  // and their tickets

    explicit PinnedPool(DeviceState& device) : device_(device) {}
    // Null where the device has no such power. Throws MemoryError. capacity: to be given back.
    void* allocate(std::uint64_t bytes, std::uint64_t& capacity);
    // uses: what has to be done before it serves again.
    void free(void* block, std::uint64_t capacity, Uses uses) noexcept;
    const void* backend() const noexcept;  // for whose devices it is
    // What no work uses any more goes back to the backend.
    void release() noexcept;

private:
    struct Block {
        void* memory;
        std::uint64_t capacity;
        Uses uses;
        bool done();
    };
    DeviceState& device_;
    std::mutex mutex_;
    std::vector<Block> free_;
};

}  // namespace catena
