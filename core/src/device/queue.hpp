// Memory of a device, and its streams as the core has them: ordered queues of work, the memory that is
// used in their order, and who waits for whom.
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

    // Removes segments that are free as a whole, largest first, while free(memory, bytes) returns true;
    // free() returns them to the backend.
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
    // The number of recordings under way. Until the last one ends, nothing goes back to the backend: freeing
    // memory may wait for streams, which breaks a recording. Changes under the lock.
    std::atomic<int> recordings{0};
    bool release_wanted = false;  // whether release_cached() runs when the last recording ends
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
    // Returns all free memory of the device to the backend, except memory that a recording may use
    // again. During a recording this is postponed until its end.
    void release_cached() noexcept;
    MemoryStats stats() const;
    void reset_peak() noexcept { stats_.peak = stats_.in_use; }  // under the device's lock
    void keep(bool kept) noexcept;                               // free blocks are not given back
    bool recorded() const noexcept { return recorded_; }

    // For the lists of a thread that ends.
    void give_back(int size_class, void* const* blocks, int count) noexcept;
    // Bytes in this thread's lists.
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

    explicit PinnedPool(DeviceState& of) : device(of) {}
    DeviceState& device;
    // Null if the device does not support it. Throws MemoryError. capacity: to be given back.
    void* allocate(std::uint64_t bytes, std::uint64_t& capacity);
    // uses: the work that must finish before it is reused.
    void free(void* block, std::uint64_t capacity, Uses uses) noexcept;
    // What no work uses any more goes back to the backend.
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

// It is never freed, because arrays and their memory refer to it. Each submission increments the ticket
// afterwards, so an event that is recorded next covers all earlier submissions.
class Queue {
public:
    static constexpr std::uint64_t end = ~std::uint64_t{0};  // as a ticket: all that was given

    Queue(DeviceState& of, catena_stream* stream, bool recorder = false);
    virtual ~Queue() = default;

    DeviceState& device;
    catena_stream* const native;
    const bool async;  // else work is done at once, and tickets stay 0
    CachingAllocator own;
    std::atomic<CachingAllocator*> pool{&own};  // for new arrays; another one before a recording
    std::atomic<Recorder*> recording{nullptr};  // of its work, now; of a recorder: itself

    std::uint64_t now() const noexcept { return ticket_.load(std::memory_order_acquire); }
    // Counts a submission. Returns its ticket; for recorded work `end`, because each launch repeats it.
    std::uint64_t advance() noexcept {
        if (!async) return 0;
        const std::uint64_t ticket = ticket_.fetch_add(1, std::memory_order_acq_rel) + 1;
        return recording.load(std::memory_order_relaxed) ? end : ticket;
    }
    // The ticket of what was given last by this thread, or a later one.
    std::uint64_t last() const noexcept {
        return recording.load(std::memory_order_relaxed) ? end : now();
    }
    // Later work on this queue waits for that ticket of the other queue. If their backends differ or this
    // queue is synchronous, the caller waits.
    void after(Queue& other, std::uint64_t ticket);
    // The caller waits.
    void finish(std::uint64_t ticket = end);
    // All of it is done. Throws UnsupportedError where the backend cannot say.
    bool done();
    // That ticket is known to be done; does not wait where the backend can be asked.
    bool reached(std::uint64_t ticket) noexcept;
    // Records an event, so that later readers wait only for work submitted so far.
    void mark();
    // After a wait for the whole device, this ticket is known to be done.
    void known_done(std::uint64_t ticket) noexcept;

    Stream as_stream() noexcept;
    // Calls the backend, which gives work to this queue; throws its error with the device's name.
    template <class Call>
    void give(const Call& call);
    [[noreturn]] void refuse(const char* what) const;  // while it is recorded

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
    std::mutex mutex_;  // of what follows
    Point points_[8];
    unsigned next_point_ = 0;
    std::map<const Queue*, std::uint64_t> seen_;  // comes after these tickets
};

// A queue that records work: the hooks of catena::Capture. It shares its stream with the queue whose
// work it records, and owns the arrays that this work makes.
class Recorder : public Queue {
public:
    explicit Recorder(Queue& recorded) : Queue(recorded.device, recorded.native, true) {}
    // Orders the recording after everything that the queue waits for.
    void sees_as(Queue& queue) {
        const std::scoped_lock lock(mutex_, queue.mutex_);
        seen_ = queue.seen_;
    }
    // Its work uses an array that it did not make.
    virtual void uses(ArrayBody& owner, bool writes) = 0;
    // Another queue uses an array that its work made.
    virtual void used_by(Queue& other, bool writes) = 0;
    // Each launch writes into `state` where n blocks of random numbers of a device begin.
    virtual void draws(const Array& state, DeviceState& of, std::uint64_t n) = 0;
};
// Where work for a queue really goes: while it is recorded, to the recorder.
inline Queue& recorded(Queue& queue) noexcept {
    Recorder* const recorder = queue.recording.load(std::memory_order_acquire);
    return recorder ? *recorder : queue;
}

// What few arrays need.
struct ArrayExtra {
    SmallVector<Queue*, 2> readers;  // besides the last writer's queue, since then
    std::function<void()> release;   // of foreign memory
    PinnedPool* pinned = nullptr;    // whose block it is
};
ArrayExtra& extra_of(ArrayBody& body);

// Throws InvalidError for an empty handle.
Queue& queue_of(const Stream& stream);
// The thread's queue of a device.
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
// Work on the queue is going to read it.
inline void before_read(ArrayBody& body, Queue& queue) {
    ArrayBody& owner = owner_of(body);
    if (owner.queue.load(std::memory_order_acquire) != &queue) [[unlikely]]
        read_elsewhere(owner, queue);
}
// Work on the queue is going to write it.
inline void before_write(ArrayBody& body, Queue& queue) {
    ArrayBody& owner = owner_of(body);
    if (owner.queue.load(std::memory_order_acquire) != &queue ||
        owner.extra.load(std::memory_order_acquire)) [[unlikely]]
        write_elsewhere(owner, queue);
}
// The work that writes it was given to the queue and got that ticket.
inline void after_write(ArrayBody& body, Queue& queue, std::uint64_t ticket) noexcept {
    ArrayBody& owner = owner_of(body);
    owner.queue.store(&queue, std::memory_order_release);
    owner.ticket = owner.home && owner.home->recorded() ? Queue::end : ticket;
}
// The host itself is going to touch memory that it can reach.
void before_host(ArrayBody& body, bool writes);
// For destroy(): the memory goes back to where it came from, in an order that is safe.
void give_back_memory(ArrayBody& body) noexcept;

}  // namespace catena
