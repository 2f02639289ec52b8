// Caches memory of a device for the work of one queue.
#pragma once

#include "device/segments.hpp"

#include <catena/core/device.hpp>

#include <catena/abi/base.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

namespace catena {

class CachingAllocator;
class Queue;

// What the allocators of a device share.
struct DeviceMemory {
    std::mutex mutex;  // of all of them
    MemoryStats stats;
    std::vector<CachingAllocator*> pools;
    // Of streams of the device, now. Until the last one ends nothing goes back to the backend: freeing
    // memory may wait for streams, which breaks a recording. Changes under the lock.
    std::atomic<int> recordings{0};
    bool release_wanted = false;  // by then
};

// Blocks are used, freed and used again in the order of one queue: a block may be freed while work
// that uses it is still queued there. Small blocks have size classes, four to each power of two, and
// pass through lists of the thread, so that the hot path takes no lock; large ones are cut from
// segments, which grow with what is in use.
class CachingAllocator {
public:
    enum class Kind { shared, recorded };  // recorded: for the work of one recording
    explicit CachingAllocator(Queue& owner, Kind kind = Kind::shared);
    CachingAllocator(const CachingAllocator&) = delete;
    CachingAllocator& operator=(const CachingAllocator&) = delete;

    Queue& queue;

    // Throws MemoryError. capacity: the block's true size, to be given back to free().
    void* allocate(std::uint64_t bytes, std::uint64_t& capacity);
    void free(void* block, std::uint64_t capacity) noexcept;
    // All that is free on the device goes back to the backend, but for what a recording may use
    // again. While one is made this is put off until its end.
    void release_cached() noexcept;
    MemoryStats stats() const;
    void reset_peak() noexcept { stats_.peak = stats_.in_use; }  // under the device's lock
    void keep(bool kept) noexcept;                               // free blocks are not given back
    bool recorded() const noexcept { return kind_ == Kind::recorded; }

    // For the lists of a thread that ends.
    void give_back(int size_class, void* const* blocks, int count) noexcept;
    // Bytes that this thread has at hand.
    std::int64_t at_hand() const noexcept;

    static constexpr int small_classes = 28;  // up to 7 KiB
    static constexpr int thread_depth = 32;   // blocks kept in a thread for each small class

private:
    bool keeps() const noexcept;  // what is freed, for the next allocation
    void* take_large(std::uint64_t bytes, std::uint64_t& capacity);
    void* take_uncached(std::uint64_t capacity);
    void give_back_large(void* block, std::uint64_t capacity) noexcept;
    void* grow(std::uint64_t capacity);
    void trim(std::int64_t wanted);
    void* ask_backend(std::uint64_t capacity);
    void* try_backend(std::uint64_t capacity, catena_ctx& ctx);
    void return_to_backend(void* block, std::uint64_t bytes) noexcept;
    int refill(int size_class, void** blocks, int count);
    template <class More>
    void release_segments(const More& more) noexcept;
    void release_all() noexcept;
    void count(std::int64_t in_use, std::int64_t cached) noexcept;

    DeviceMemory& memory_;
    const Kind kind_;
    const int slot_;  // in the threads' lists, or none
    bool kept_;
    struct Small {
        std::vector<void*> blocks;
        std::size_t made = 0;  // number of blocks, free or in use
    };
    std::array<Small, small_classes> free_;
    Segments segments_;
    struct Late {
        void* block;
        std::uint64_t bytes;
    };
    std::vector<Late> late_;  // freed while a recording was made, by who caches nothing
    char* slab_ = nullptr;    // rest of the newest slab; slabs are never given back
    std::uint64_t slab_rest_ = 0;
    MemoryStats stats_;
};

}  // namespace catena
