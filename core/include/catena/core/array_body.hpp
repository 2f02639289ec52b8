// What an Array refers to: its memory, and the descriptors that kernels get without conversion.
#pragma once

#include <catena/abi/tensor.h>

#include <atomic>
#include <cstdint>

namespace catena {

class CachingAllocator;
class DeviceState;
class Queue;
struct ArrayExtra;

// Lives in a pool; made and destroyed by the functions of array.cpp only.
class ArrayBody {
public:
    void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void release() noexcept {
        // An acquire load suffices to see that nobody else holds it: the common case costs no
        // locked instruction.
        if (references_.load(std::memory_order_acquire) == 1 ||
            references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            destroy();
        }
    }
    bool unique() const noexcept { return references_.load(std::memory_order_acquire) == 1; }
    // Nobody else sees its memory, but recordings, whose launches use it as it is by then.
    bool exclusive() const noexcept {
        const ArrayBody& owner = base ? *base : *this;
        return (!base || unique()) && owner.references_.load(std::memory_order_acquire) ==
                                          1 + owner.recordings.load(std::memory_order_relaxed);
    }

    catena_tensor tensor;  // shape points into meta, strides to the field below
    catena_meta meta;
    std::int64_t strides[CATENA_MAX_NDIM];
    DeviceState* device = nullptr;
    void* block = nullptr;             // its memory, or null
    std::uint64_t capacity = 0;        // bytes of block
    CachingAllocator* home = nullptr;  // whose block it is; null: foreign memory
    ArrayBody* base = nullptr;         // a view keeps the owner of its memory

    // Of the owner: which work comes before a use of the memory.
    std::atomic<Queue*> queue{nullptr};        // of the last writer
    std::uint64_t ticket = 0;                  // of the last writer in its queue
    std::atomic<ArrayExtra*> extra{nullptr};   // what few arrays need
    std::uint32_t version = 0;                 // changes when a call writes into the memory
    std::atomic<std::uint32_t> recordings{0};  // references that recordings hold

private:
    void destroy() noexcept;

    std::atomic<std::uint32_t> references_{1};
};

}  // namespace catena
