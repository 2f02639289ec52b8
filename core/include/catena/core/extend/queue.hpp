// Queue: the work of a stream, in order. Recorder: records it. For libraries that extend the core.
#pragma once

#include <catena/core/array.hpp>
#include <catena/core/stream.hpp>

#include <map>
#include <mutex>

namespace catena {

class Recorder;

// A stream with tickets. Never freed, because arrays and their memory refer to it. The ticket grows
// after each submission, so an event that is recorded at a ticket covers all submissions up to it.
class Queue {
public:
    static constexpr std::uint64_t end = ~std::uint64_t{0};  // as a ticket: all work so far

    Queue(DeviceState& of, catena_stream* stream, bool recorder = false);
    virtual ~Queue();

    DeviceState& device;
    catena_stream* const native;
    const bool async;  // if false, work is done at once, and tickets stay 0
    const std::unique_ptr<CachingAllocator> own;
    std::atomic<CachingAllocator*> pool;        // for new arrays; the recorder's during warm-up
    std::atomic<Recorder*> recording{nullptr};  // active recorder or null; in a recorder: itself

    std::uint64_t now() const noexcept { return ticket_.load(std::memory_order_acquire); }
    // Counts a submission. Returns its ticket; `end` for recorded work, which each launch repeats.
    std::uint64_t advance() noexcept {
        if (!async) return 0;
        const std::uint64_t ticket = ticket_.fetch_add(1, std::memory_order_acq_rel) + 1;
        return recording.load(std::memory_order_relaxed) ? end : ticket;
    }
    // Returns the ticket of this thread's last submission, or a later one.
    std::uint64_t last() const noexcept {
        return recording.load(std::memory_order_relaxed) ? end : now();
    }
    // Makes later work on this queue wait for that ticket of the other queue. If their backends
    // differ or this queue is synchronous, the caller waits instead.
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

// A queue that records work, with hooks for catena::Capture. It shares its stream with the queue
// whose work it records, and owns the arrays that the recorded work makes.
class Recorder : public Queue {
public:
    explicit Recorder(Queue& recorded) : Queue(recorded.device, recorded.native, true) {}
    // Orders the recording after everything that the queue waits for.
    void sees_as(Queue& queue) {
        const std::scoped_lock lock(mutex_, queue.mutex_);
        seen_ = queue.seen_;
    }
    // From hold_memory() to release_memory() no memory of the device returns to the backend.
    void hold_memory();
    void release_memory() noexcept;
    void keep_free_memory(bool kept) noexcept;  // for the next recording
    // Called when recorded work uses an array that the recording did not make.
    virtual void uses(ArrayBody& owner, bool writes) = 0;
    // Called when another queue uses an array that recorded work made.
    virtual void used_by(Queue& other, bool writes) = 0;
    // Makes each launch reserve n blocks of random numbers and write their start to `state`.
    virtual void draws(const Array& state, DeviceState& of, std::uint64_t n) = 0;
};
// Returns the queue that receives work for `queue`: its recorder during a recording, else itself.
inline Queue& recorded(Queue& queue) noexcept {
    Recorder* const recorder = queue.recording.load(std::memory_order_acquire);
    return recorder ? *recorder : queue;
}

// All queues of a device. add_queue() adds one, which the device owns.
std::vector<Queue*> queues_of(Device device);
Queue& add_queue(std::unique_ptr<Queue> queue);

}  // namespace catena
