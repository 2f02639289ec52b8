// A stream as the core has it: an ordered queue of work of one device, the memory that is used in its
// order, and who waits for whom.
#pragma once

#include "device/allocator.hpp"

#include <catena/core/array.hpp>
#include <catena/core/small_vector.hpp>
#include <catena/core/stream.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace catena {

class Recorder;

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
    // Something was given to it. Returns the ticket of what that writes: work that is recorded comes
    // again and again.
    std::uint64_t advance() noexcept {
        if (!async) return 0;
        const std::uint64_t ticket = ticket_.fetch_add(1, std::memory_order_acq_rel) + 1;
        return recording.load(std::memory_order_relaxed) ? end : ticket;
    }
    // The ticket of what was given last by this thread, or a later one.
    std::uint64_t last() const noexcept {
        return recording.load(std::memory_order_relaxed) ? end : now();
    }
    // What is given to this queue from now on comes after that ticket of the other. Where no event
    // can do it the caller waits.
    void after(Queue& other, std::uint64_t ticket);
    void after(catena_event* event);  // of its backend
    // The caller waits.
    void finish(std::uint64_t ticket = end);
    // All of it is done. Throws UnsupportedError where the backend cannot say.
    bool done();
    // That ticket is known to be done; does not wait where the backend can be asked.
    bool reached(std::uint64_t ticket) noexcept;
    void record(catena_event* event);
    // Records an event: those that need what came until now will not wait for what comes.
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
    void wait_for(catena_event* event);
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
    // It comes after all that the queue comes after.
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
