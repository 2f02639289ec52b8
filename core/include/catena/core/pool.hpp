// Small memory blocks from thread-local free lists, used instead of heap memory during calls.
#pragma once

#include <cstddef>

namespace catena {

// Blocks of up to 1 KiB are recycled; larger ones come from the heap. Any thread may free any
// block.
void* pool_allocate(std::size_t bytes);
void pool_free(void* block, std::size_t bytes) noexcept;

// The base of classes whose objects are allocated from the pool.
class Pooled {
public:
    static void* operator new(std::size_t bytes) { return pool_allocate(bytes); }
    static void operator delete(void* block, std::size_t bytes) noexcept {
        pool_free(block, bytes);
    }
};

template <class T>
struct PoolAllocator {
    using value_type = T;
    PoolAllocator() = default;
    template <class U>
    PoolAllocator(const PoolAllocator<U>&) noexcept {}  // NOLINT: allocators convert
    T* allocate(std::size_t n) { return static_cast<T*>(pool_allocate(n * sizeof(T))); }
    void deallocate(T* block, std::size_t n) noexcept { pool_free(block, n * sizeof(T)); }
    bool operator==(const PoolAllocator&) const = default;
};

}  // namespace catena
