// Memory and streams of a device: caching allocators, pinned memory, work queues, and the order between them.
#pragma once

#include <catena/core/array.hpp>
#include <catena/core/memory.hpp>
#include <catena/core/stream.hpp>

#include <map>
#include <mutex>
#include <set>

namespace catena {

class CachingAllocator;
class DeviceState;
class Queue;
class Recorder;

// Whether freed blocks are kept for the next allocation.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool recycle = false;  // so that the sanitizer sees every free
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool recycle = false;
#else
inline constexpr bool recycle = true;
#endif
#else
inline constexpr bool recycle = true;
#endif

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
    // Returns the bytes in this thread's lists.
    std::int64_t at_hand() const noexcept;

    static constexpr int small_classes = 28;  // up to 7 KiB
    static constexpr int thread_depth = 32;   // blocks kept in a thread for each small class

private:
    bool keeps() const noexcept;  // whether freed blocks are kept for reuse
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
    const int slot_;  // index into the lists of threads; out of range: none
    bool kept_;
    struct Small {
        std::vector<void*> blocks;
        std::size_t made = 0;  // number of blocks, free or in use
    };
    std::array<Small, small_classes> free_;
    Segments segments_;
    char* slab_ = nullptr;  // rest of the newest slab; slabs are never released
    std::uint64_t slab_rest_ = 0;
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

// ---- streams

// A stream with tickets. Never freed, because arrays and their memory refer to it. The ticket grows after
// each submission, so an event that is recorded at a ticket covers all submissions up to that ticket.
class Queue {
public:
    static constexpr std::uint64_t end = ~std::uint64_t{0};  // as a ticket: all work so far

    Queue(DeviceState& of, catena_stream* stream, bool recorder = false);
    virtual ~Queue() = default;

    DeviceState& device;
    catena_stream* const native;
    const bool async;  // if false, work is done at once, and tickets stay 0
    CachingAllocator own;
    std::atomic<CachingAllocator*> pool{&own};  // for new arrays; the recorder's during warm-up
    std::atomic<Recorder*> recording{nullptr};  // active recorder or null; in a recorder: itself

    std::uint64_t now() const noexcept { return ticket_.load(std::memory_order_acquire); }
    // Counts a submission and returns its ticket, or `end` for recorded work, which each launch repeats.
    std::uint64_t advance() noexcept {
        if (!async) return 0;
        const std::uint64_t ticket = ticket_.fetch_add(1, std::memory_order_acq_rel) + 1;
        return recording.load(std::memory_order_relaxed) ? end : ticket;
    }
    // Returns the ticket of this thread's last submission, or a later one.
    std::uint64_t last() const noexcept {
        return recording.load(std::memory_order_relaxed) ? end : now();
    }
    // Makes later work on this queue wait for that ticket of the other queue. If their backends differ or
    // this queue is synchronous, the caller waits instead.
    void after(Queue& other, std::uint64_t ticket);
    // Blocks the caller until the ticket is done.
    void finish(std::uint64_t ticket = end);
    // Whether all work is done. Throws UnsupportedError if the backend cannot query streams.
    bool done();
    // Whether the ticket is known to be done. Waits for it if the backend cannot query events.
    bool reached(std::uint64_t ticket) noexcept;
    // Records an event, so that later readers wait only for work submitted so far.
    void mark();
    // Marks the ticket as done.
    void known_done(std::uint64_t ticket) noexcept;

    Stream as_stream() noexcept;
    // Calls the backend to submit work to this queue. Throws its error with the device's name.
    template <class Call>
    void give(const Call& call);
    [[noreturn]] void refuse(const char* what) const;  // throws: a recording cannot contain this

private:
    friend class Recorder;
    struct Point {
        std::uint64_t ticket = 0;
        catena_event* event = nullptr;
    };
    Point* find(std::uint64_t ticket);
    Point& point(std::uint64_t ticket);
    bool ask(const Point* point, std::uint64_t until);

    std::atomic<std::uint64_t> ticket_{0};
    std::atomic<std::uint64_t> done_{0};
    std::mutex mutex_;  // guards the members below
    Point points_[8];
    unsigned next_point_ = 0;
    std::map<const Queue*, std::uint64_t> seen_;  // later work waits for these tickets
};

// A queue that records work, with hooks for catena::Capture. It shares its stream with the queue whose work
// it records, and owns the arrays that the recorded work makes.
class Recorder : public Queue {
public:
    explicit Recorder(Queue& recorded) : Queue(recorded.device, recorded.native, true) {}
    // Orders the recording after everything that the queue waits for.
    void sees_as(Queue& queue) {
        const std::scoped_lock lock(mutex_, queue.mutex_);
        seen_ = queue.seen_;
    }
    // Called when recorded work uses an array that the recording did not make.
    virtual void uses(ArrayBody& owner, bool writes) = 0;
    // Called when another queue uses an array that recorded work made.
    virtual void used_by(Queue& other, bool writes) = 0;
    // Makes each launch reserve n blocks of a device's random numbers and write their start to `state`.
    virtual void draws(const Array& state, DeviceState& of, std::uint64_t n) = 0;
};
// Returns the queue that receives work for `queue`: its recorder during a recording, else itself.
inline Queue& recorded(Queue& queue) noexcept {
    Recorder* const recorder = queue.recording.load(std::memory_order_acquire);
    return recorder ? *recorder : queue;
}

// Fields that few arrays need.
struct ArrayExtra {
    SmallVector<Queue*, 2> readers;  // other queues that read since the last write
    std::function<void()> release;   // called when foreign memory is no longer used
    PinnedPool* pinned = nullptr;    // owner of a pinned block, or null
};
ArrayExtra& extra_of(ArrayBody& body);

// Throws InvalidError for an empty handle.
Queue& queue_of(const Stream& stream);
// The thread's innermost using_stream scope, or null. current_queue() uses the scopes.
extern constinit
    __attribute__((tls_model("initial-exec"))) thread_local const using_stream* streams;
Queue& main_queue(DeviceState& device) noexcept;
Queue& queue_in_scopes(DeviceState& device) noexcept;
inline Queue& current_queue(DeviceState& device) noexcept {
    return streams ? queue_in_scopes(device) : main_queue(device);
}

// ---- order: before each use of an array's memory, and after each write

inline ArrayBody& owner_of(ArrayBody& body) noexcept { return body.base ? *body.base : body; }

void read_elsewhere(ArrayBody& owner, Queue& queue);
void write_elsewhere(ArrayBody& owner, Queue& queue);
// Call it before work on the queue reads the array.
inline void before_read(ArrayBody& body, Queue& queue) {
    ArrayBody& owner = owner_of(body);
    if (owner.queue.load(std::memory_order_acquire) != &queue) [[unlikely]]
        read_elsewhere(owner, queue);
}
// Call it before work on the queue writes the array.
inline void before_write(ArrayBody& body, Queue& queue) {
    ArrayBody& owner = owner_of(body);
    if (owner.queue.load(std::memory_order_acquire) != &queue ||
        owner.extra.load(std::memory_order_acquire)) [[unlikely]]
        write_elsewhere(owner, queue);
}
// Call it after work that writes the array was submitted to the queue with that ticket.
inline void after_write(ArrayBody& body, Queue& queue, std::uint64_t ticket) noexcept {
    ArrayBody& owner = owner_of(body);
    owner.queue.store(&queue, std::memory_order_release);
    owner.ticket = owner.home && owner.home->recorded() ? Queue::end : ticket;
}
// Waits until the host may read or write the array in memory that it can access.
void before_host(ArrayBody& body, bool writes);
// Returns the memory to its allocator, pool or owner, ordered after all uses.
void give_back_memory(ArrayBody& body) noexcept;

}  // namespace catena
