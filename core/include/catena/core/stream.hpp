// Streams: ordered queues of work of one device, and events: points in them.
//
// Calls go to the thread's current stream of their device and return before the work is done. Results
// may be used anywhere: a call on another stream, a copy, or the host waits by itself for what it
// needs. On a device that does all at once streams and events are there too, and never wait.
#pragma once

#include <catena/core/device.hpp>

#include <catena/abi/base.h>

#include <cstdint>
#include <memory>

namespace catena {

class Array;
class Event;
class Queue;

// A handle, cheap to copy. A stream whose last handle is gone finishes its work, and later serves as a
// new one. Any thread may use it; work given by several threads is in the order in which it came.
class Stream {
public:
    Stream() = default;  // none
    explicit Stream(Device device);
    // The thread's: the device's main stream unless a using_stream scope says otherwise. No device
    // means Device::current().
    static Stream current(Device device = {});

    Device device() const;
    void synchronize() const;  // waits for all work; throws DeviceError if some of it failed
    bool done() const;         // all work is done; does not wait
    // What is given to this stream from now on waits for it, not the caller.
    void wait(const Event& event) const;
    void wait(const Stream& other) const;
    // Of what was made on it; Device::reset_peak_memory() is for it, too.
    MemoryStats memory() const;
    // The backend's, for work that the program gives to it by itself: see use(). Null on a device
    // that does all at once.
    catena_stream* native() const;

    explicit operator bool() const noexcept { return queue_ != nullptr; }
    bool operator==(const Stream& other) const noexcept = default;
    Queue* queue() const noexcept { return queue_.get(); }

private:
    friend class Queue;
    explicit Stream(std::shared_ptr<Queue> queue) : queue_(std::move(queue)) {}
    std::shared_ptr<Queue> queue_;
};

// A point in a stream. A handle, cheap to copy; each copy is the same event.
class Event {
public:
    Event() = default;  // none
    explicit Event(Device device);
    // Takes an event of the device's backend, which is destroyed with the last handle.
    Event(Device device, catena_event* native);

    // Moves it behind all that was given to the stream, which is one of its device.
    void record(const Stream& stream) const;
    void synchronize() const;  // waits until the last record is reached
    bool done() const;         // it is, or there was none; does not wait
    // Milliseconds of the device's clock from begin to this one; both are waited for. Throws
    // InvalidError where one was not recorded.
    double elapsed_since(const Event& begin) const;

    Device device() const;
    catena_event* native() const;  // null on a device that does all at once
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    friend class Stream;
    struct State;
    const State& need() const;
    std::shared_ptr<State> state_;
};

// In the scope, calls of this thread on the stream's device go to it. Scopes of several devices go
// together; the innermost of a device counts.
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

// Before a program gives work of its own to stream.native(): says that it reads or writes an array.
// The stream waits for what it needs; whoever uses the array later waits for the stream.
void use(const Stream& stream, const Array& array, bool writes);

}  // namespace catena
