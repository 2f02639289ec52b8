// Memory of a device: caching allocators and pinned memory.
#pragma once

#include <catena/core/extend/queue.hpp>

#include <set>

namespace catena {

// Segments of memory, split into free and used ranges; take() uses the smallest free one that fits. Sizes are
// multiples of `unit`. Not thread-safe. Nodes come from the pool: a loop that repeats its sizes uses no heap.
class Segments {
public:
    static constexpr std::uint64_t unit = 4096;

    // Returns a block of this size, or null if no free range is large enough. If take() or add() throws
    // std::bad_alloc, nothing has changed.
    void* take(std::uint64_t bytes);
    // Adds a new segment, which is entirely free.
    void add(void* memory, std::uint64_t bytes);
    void give_back(void* block) noexcept;
    std::uint64_t reserved() const noexcept { return reserved_; }

    // Removes free segments, largest first, while free(memory, bytes), which frees them, returns true.
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
        bool first;  // the first range of its segment
        // A used range keeps its node of free_, so that give_back() allocates nothing. Empty: it is free.
        FreeSet::node_type node = {};
    };
    using Ranges =
        std::map<char*, Range, std::less<>, PoolAllocator<std::pair<char* const, Range>>>;

    void insert(char* block, std::uint64_t bytes, bool first);

    Ranges ranges_;
    FreeSet free_;
    std::uint64_t reserved_ = 0;
};

// State that the allocators of a device share.
struct DeviceMemory {
    std::mutex mutex;  // guards all allocators of the device
    MemoryStats stats;
    std::vector<CachingAllocator*> pools;
    // The number of active recordings. Until the last one ends, no memory returns to the backend: freeing may
    // wait for streams, which breaks a recording. Written under the lock.
    std::atomic<int> recordings{0};
    bool release_wanted = false;  // whether release_cached() runs when the last recording ends
};

// The memory of a queue. Blocks are reused in queue order: a block may be freed while work that uses it is
// still queued. Small blocks have four size classes for each power of two and pass through lists of each
// thread: the hot path takes no lock. Large blocks are cut from segments, which grow with the memory in use.
class CachingAllocator {
public:
    CachingAllocator(Queue& owner, bool recorded);  // recorded: for the work of one recording
    CachingAllocator(CachingAllocator&&) = delete;

    Queue& queue;

    // Throws MemoryError. capacity: receives the size of the block, which free() takes.
    void* allocate(std::uint64_t bytes, std::uint64_t& capacity);
    void free(void* block, std::uint64_t capacity) noexcept;
    // Returns the device's free memory to the backend, except small blocks and memory that a recording may
    // use again. During a recording this is postponed until its end.
    void release_cached() noexcept;
    MemoryStats stats() const;
    void reset_peak() noexcept { stats_.peak = stats_.in_use; }  // requires the device's lock
    void keep(bool kept) noexcept;                               // whether free segments are kept
    bool recorded() const noexcept { return recorded_; }

    // Takes small blocks back from the lists of a thread.
    void give_back(int size_class, void* const* blocks, int count) noexcept;
    // Counts the blocks in this thread's lists as cached, not as in use.
    void free_lists(MemoryStats& stats) const noexcept;

    static constexpr int small_classes = 28;  // up to 7 KiB
    static constexpr int thread_depth = 32;   // blocks kept in a thread for each small class

private:
    // Whether freed blocks are kept for reuse. A recording cannot allocate from the backend, and its
    // launches write to blocks that it freed.
    bool keeps() const noexcept { return recycle || recorded_; }
    void* take_large(std::uint64_t bytes, std::uint64_t capacity);
    void give_back_large(void* block, std::uint64_t capacity) noexcept;
    void* grow(std::uint64_t capacity);
    void* ask_backend(std::uint64_t capacity);
    void* try_backend(std::uint64_t capacity, catena_ctx& ctx);
    void return_to_backend(void* block, std::uint64_t bytes) noexcept;
    int refill(int size_class, void** blocks, int count);
    template <class More>
    void release_segments(const More& more) noexcept;
    void count(std::int64_t in_use, std::int64_t cached) noexcept;

    DeviceMemory& memory_;
    const bool recorded_;
    const int slot_;  // index into the lists of threads; out of range: none
    bool kept_;
    struct Small {
        std::vector<void*> blocks;
        std::size_t made = 0;  // number of blocks, free or in use
    };
    std::array<Small, small_classes> free_;
    Segments segments_;
    std::span<char> slab_;  // rest of the newest slab; slabs are never released
    MemoryStats stats_;
};

// Host memory that a device can read and write directly. It is kept for the next array: allocation is slow.
class PinnedPool {
public:
    using Uses = std::vector<std::pair<Queue*, std::uint64_t>>;  // with the tickets to wait for

    explicit PinnedPool(DeviceState& of) : device(of) {}
    DeviceState& device;
    // Returns null if the device does not support it. Throws MemoryError. capacity: an argument of free().
    void* allocate(std::uint64_t bytes, std::uint64_t& capacity);
    // uses: the work that must finish before the block is reused.
    void free(void* block, std::uint64_t capacity, Uses uses) noexcept;
    // Returns blocks that no work uses to the backend.
    void release() noexcept;

private:
    struct Block {
        void* memory;
        std::uint64_t capacity;
        Uses uses;
        bool done();
    };
    std::mutex mutex_;
    std::vector<Block> free_;
};

}  // namespace catena
