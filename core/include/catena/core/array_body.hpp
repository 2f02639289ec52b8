// The object behind an Array: its memory, and the descriptors that kernels receive without
// conversion.
#pragma once

#include <catena/abi/tensor.h>
#include <catena/core/ref.hpp>

#include <atomic>
#include <cstdint>

namespace catena {

class CachingAllocator;
class DeviceState;
class Queue;
struct ArrayExtra;

// Allocated from a pool. Only the functions in array.cpp create and destroy it.
class ArrayBody {
public:
    void retain() noexcept { references_.add(); }
    void release() noexcept {
        if (references_.drop()) destroy();
    }
    bool unique() const noexcept { return references_.get() == 1; }
    // Whether nobody else can see the memory, except recordings, which use its content at launch.
    bool exclusive() const noexcept {
        const ArrayBody& owner = base ? *base : *this;
        return (!base || unique()) &&
               owner.references_.get() == 1 + owner.recordings.load(std::memory_order_relaxed);
    }

    catena_tensor tensor;  // shape points into meta, strides to the field below
    catena_meta meta;
    std::int64_t strides[CATENA_MAX_NDIM];
    DeviceState* device = nullptr;
    void* block = nullptr;             // the memory, or null
    std::uint64_t capacity = 0;        // bytes of block
    CachingAllocator* home = nullptr;  // owner of the block; null for foreign memory
    ArrayBody* base = nullptr;         // a view keeps the owner of its memory alive

    // In the owner of the memory: the work that must be done before it is used.
    std::atomic<Queue*> queue{nullptr};        // of the last writer
    std::uint64_t ticket = 0;                  // of the last writer in its queue
    std::atomic<ArrayExtra*> extra{nullptr};   // fields that few arrays need
    std::uint32_t version = 0;                 // changes when a call writes into the memory
    std::atomic<std::uint32_t> recordings{0};  // references that recordings hold

private:
    void destroy() noexcept;

    RefCount references_{1};
};

}  // namespace catena
