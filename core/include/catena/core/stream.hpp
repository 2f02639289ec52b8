// Streams: ordered queues of work on one device.
//
// Calls run on the thread's current stream of their device and return before the work is done.
// Results may be used anywhere: a call on another stream, a copy, or the host waits for exactly the
// work that it needs. On synchronous devices streams exist too, and never wait.
#pragma once

#include <catena/core/device.hpp>

#include <memory>

namespace catena {

class Queue;

// A handle that is cheap to copy. A stream without handles finishes its work and is reused later.
// Thread-safe; work of several threads runs in the order in which it was launched.
class Stream {
public:
    Stream() = default;  // empty
    explicit Stream(Device device);
    // The thread's current stream: the device's main stream unless a using_stream scope sets
    // another. An empty device means Device::current().
    static Stream current(Device device = {});

    Device device() const;
    void synchronize() const;  // waits for all work; throws DeviceError if some of it failed
    bool done() const;         // all work is done; does not wait
    // Makes later work on this stream wait for the other stream, or for an Event
    // (catena/event.hpp). Does not block the caller.
    void wait(const Stream& other) const;
    template <class Event>
    void wait(const Event& event) const {
        event.hold_back(*this);
    }
    // Memory of arrays made on this stream. Device::reset_peak_memory() resets its peak too.
    MemoryStats memory() const;
    // The backend's stream, for the program's own work: see use(). Null on a synchronous device.
    catena_stream* native() const;

    explicit operator bool() const noexcept { return queue_ != nullptr; }
    bool operator==(const Stream& other) const noexcept = default;
    Queue* queue() const noexcept { return queue_.get(); }

private:
    friend class Queue;
    explicit Stream(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}
    std::shared_ptr<Queue> queue_;
};

// In the scope, calls of this thread on the stream's device run on it. Scopes for several devices
// can be combined; for each device the innermost applies.
class [[nodiscard]] using_stream {
public:
    [[nodiscard]] explicit using_stream(const Stream& stream);
    using_stream(using_stream&&) = delete;
    ~using_stream();

    const Stream& stream() const noexcept { return stream_; }
    const using_stream* outer() const noexcept { return outer_; }

private:
    Stream stream_;
    const using_stream* outer_;
};

}  // namespace catena
