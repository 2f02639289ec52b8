// Work of a stream, recorded once and launched many times: for steps of many small calls, whose
// launches cost more than the work.
#pragma once

#include <catena/core/stream.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace catena {

// A handle, cheap to copy; each copy is the same recording.
//
//     Array y;
//     const Capture step(Stream(gpu), [&] { y = F::relu(x); });  // x keeps its memory
//     x.copy_from(next);
//     step.launch();  // y has relu(next) now; whoever uses it waits for it
//
// The body is run `warm_ups` times as it is, so that all is ready that takes memory of the system, and
// once more to be recorded: then calls compute nothing. What it computes lies in memory that stays
// reserved as long as the recording or the array lives, and each launch writes it anew. Arrays that it
// uses and did not make live as long as the recording; a launch reads and writes their memory as it is
// by then, and waits for whoever writes or reads them.
//
// What needs the host or the system cannot be recorded and is an UnsupportedError: reading elements,
// waiting, copies of host memory that is not pinned, other streams, devices' fallbacks. Random numbers
// are drawn anew in each launch, as its calls would draw them then; not by kernels that ask the host
// for them in the plain way (see abi/ext/draft/draws.h).
// Control flow, attributes and addresses are as they were when it was recorded. While it is, nothing
// that the device has cached is given back: memory that runs out then is an error.
class Capture {
public:
    Capture() = default;  // none
    static bool supported(Device device);
    // Calls of this thread in body go to the stream. No other thread gives work to it meanwhile.
    // Throws UnsupportedError if the device cannot record, and what the body throws. name: for reports
    // of faults, which else say how many kernels, copies and fills it is.
    Capture(const Stream& stream, const std::function<void()>& body, int warm_ups = 2,
            std::string_view name = {});

    void launch() const;         // on the stream that it was recorded on
    std::uint64_t size() const;  // kernels, copies and fills in it
    Stream stream() const;
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    struct State;
    State& need() const;
    std::shared_ptr<State> state_;
};

// True in a body that is being recorded, not in its warm-ups: what this thread gives to the device is
// done with each launch, and not now.
bool is_recorded(Device device);

// Its memory is a recording's, which each launch writes anew; nobody has before the first.
bool is_of_recording(const Array& array);

}  // namespace catena
