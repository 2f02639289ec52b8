// Memory of a device: cached for the work of one queue, and pinned memory of the host.
#pragma once

#include <catena/core/device.hpp>
#include <catena/core/pool.hpp>

#include <catena/abi/base.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace catena {

class CachingAllocator;
class DeviceState;
class Queue;

// Whether freed blocks are kept for the next allocation.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool recycle = false;  // let the sanitizer see every block die
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool recycle = false;
#else
inline constexpr bool recycle = true;
#endif
#else
inline constexpr bool recycle = true;
#endif

// Ranges of segments, free or used, by address; the smallest free one that fits is taken. Sizes are
// multiples of `unit`. Not thread-safe; nodes come from the pool, so that a loop that repeats its
// sizes takes no heap memory.
class Segments {
public:
    static constexpr std::uint64_t unit = 4096;

    // A block of this size, or null if no free range is large enough. If take() or add() throws
    // std::bad_alloc, nothing has changed.
    void* take(std::uint64_t bytes);
    // A new segment, free as a whole.
    void add(void* memory, std::uint64_t bytes);
    void give_back(void* block) noexcept;
    std::uint64_t reserved() const noexcept { return reserved_; }

    // Takes out segments that are free as a whole, largest first, as long as free(memory, bytes),
    // which gives them back to where they came from, says true.
    template <class Free>
    void release(const Free& free) {
        for (auto it = free_.end(); it != free_.begin();) {
            const auto [bytes, memory] = *--it;
            const auto range = ranges_.find(memory);
            const auto next = std::next(range);
            const bool whole = range->second.first && (next == ranges_.end() || next->second.first);
            if (!whole) continue;
            it = free_.erase(it);
            ranges_.erase(range);
            reserved_ -= bytes;
            if (!free(memory, bytes)) return;
        }
    }

private:
    using Free = std::pair<std::uint64_t, char*>;
    using FreeSet = std::set<Free, std::less<>, PoolAllocator<Free>>;
    struct Range {
        std::uint64_t bytes;
        bool first;  // of its segment
        bool free;
        // A used range keeps its node of free_, so that give_back() allocates nothing.
        FreeSet::node_type node = {};
    };
    using Ranges =
        std::map<char*, Range, std::less<>, PoolAllocator<std::pair<char* const, Range>>>;

    void insert(char* block, std::uint64_t bytes, bool first);
    Ranges::iterator join(Ranges::iterator left, Ranges::iterator right);

    Ranges ranges_;
    FreeSet free_;
    std::uint64_t reserved_ = 0;
};

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
    CachingAllocator(Queue& owner, bool recorded);  // recorded: for the work of one recording
    CachingAllocator(CachingAllocator&&) = delete;

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
    bool recorded() const noexcept { return recorded_; }

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
    const bool recorded_;
    const int slot_;  // in the threads' lists, or none
    bool kept_;
    struct Small {
        std::vector<void*> blocks;
        std::size_t made = 0;  // number of blocks, free or in use
    };
    std::array<Small, small_classes> free_;
    Segments segments_;
    char* slab_ = nullptr;  // rest of the newest slab; slabs are never given back
    std::uint64_t slab_rest_ = 0;
    MemoryStats stats_;
};

// Host memory that a device can read and write directly. It is kept for the next array, because
// allocating it is slow.
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
