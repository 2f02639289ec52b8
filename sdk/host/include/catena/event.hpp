// Events: points in a stream, to wait for and to measure time.
#pragma once

#include <catena/core/stream.hpp>

namespace catena {

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
    // Waits for both events, and returns the milliseconds between them on the device's clock.
    // Throws InvalidError if one was not recorded.
    double elapsed_since(const Event& begin) const;

    Device device() const;
    catena_event* native() const;  // null on a synchronous device
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    friend class Stream;
    void hold_back(const Stream& stream) const;
    struct State;
    const State& need() const;
    std::shared_ptr<State> state_;
};

}  // namespace catena
