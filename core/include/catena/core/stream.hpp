// Streams: ordered queues of work on one device. Events: points in a stream.
//
// Calls run on the thread's current stream of their device and return before the work is done.
// Results may be used anywhere: a call on another stream, a copy, or the host waits for exactly the
// work that it needs. On synchronous devices streams and events exist too, and never wait.
#pragma once

#include <catena/core/device.hpp>

#include <catena/abi/base.h>

#include <cstdint>
#include <memory>

namespace catena {

class Array;
class Event;
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
    // Makes later work on this stream wait for the event. Does not block the caller.
    void wait(const Event& event) const;
    void wait(const Stream& other) const;
    // Memory of arrays made on this stream. Device::reset_peak_memory() resets its peak too.
    MemoryStats memory() const;
    // The backend's stream, for work that the program launches itself: see use(). Null on a
    // synchronous device.
    catena_stream* native() const;

    explicit operator bool() const noexcept { return queue_ != nullptr; }
    bool operator==(const Stream& other) const noexcept = default;
    Queue* queue() const noexcept { return queue_.get(); }

private:
    friend class Queue;
    explicit Stream(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}
    std::shared_ptr<Queue> queue_;
};

// A point in a stream. A handle that is cheap to copy; copies are the same event.
class Event {
public:
    Event() = default;  // empty
    explicit Event(Device device);
    // Takes ownership of an event of the device's backend, which is destroyed with the last handle.
    Event(Device device, catena_event* native);

    // Moves the event to the end of the stream, which must belong to the same device.
    void record(const Stream& stream) const;
    void synchronize() const;  // waits until the last record is reached
    bool done() const;         // true if reached or never recorded; does not wait
    // The time in milliseconds from begin to this event, on the device's clock. Waits for both.
    // Throws InvalidError if one was not recorded.
    double elapsed_since(const Event& begin) const;

    Device device() const;
    catena_event* native() const;  // null on a synchronous device
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    friend class Stream;
    struct State;
    const State& need() const;
    std::shared_ptr<State> state_;
};

// In the scope, calls of this thread on the stream's device run on it. Scopes for several devices
// can be combined; for each device the innermost applies.
class [[nodiscard]] using_stream {
public:
    explicit using_stream(const Stream& stream);
    using_stream(const using_stream&) = delete;
    using_stream& operator=(const using_stream&) = delete;
    ~using_stream();

    const Stream& stream() const noexcept { return stream_; }
    const using_stream* outer() const noexcept { return outer_; }

private:
    Stream stream_;
    const using_stream* outer_;
};

// Declares that the program will launch its own work on stream.native() that reads or writes an
// array. The stream waits for pending work on the array; later users of the array wait for the
// stream.
void use(const Stream& stream, const Array& array, bool writes);

}  // namespace catena
