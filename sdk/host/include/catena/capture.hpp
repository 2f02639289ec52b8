// Capture: work of a stream, recorded once and launched many times, for steps of many small calls
// whose launches take longer than the work.
#pragma once

#include <catena/core/stream.hpp>

namespace catena {

// A handle, cheap to copy; each copy is the same recording.
//
//     Array y;
//     const Capture step(Stream(gpu), [&] { y = F::relu(x); });  // x keeps its memory
//     x.copy_from(next);
//     step.launch();  // y has relu(next) now; a use of y waits for it
//
// The body first runs `warm_ups` times normally, so that libraries allocate their memory, and then
// once more for the recording, in which calls compute nothing. Its results are in memory that stays
// reserved as long as the recording or the array exists, and each launch writes them again. Arrays
// that it uses but did not make live as long as the recording. A launch uses the current content of
// their memory, and waits for pending reads and writes.
//
// Work that needs the host or the system cannot be recorded and throws UnsupportedError: reading
// elements, waiting, copies of host memory that is not pinned, other streams, fallback devices.
// Each launch draws new random numbers, as its calls would; kernels that ask the host for them
// directly cannot be recorded (see abi/ext/draws.h). Control flow, attributes and addresses
// are fixed at recording time. A recording does not release the device's cached memory first.
class Capture {
public:
    Capture() = default;  // empty
    static bool supported(Device device);
    // Records the calls of this thread in body on the stream, which no other thread may use
    // meanwhile. Throws UnsupportedError if the device cannot record, and the exceptions of body.
    // name appears in error reports; the default is the number of kernels, copies and fills.
    Capture(const Stream& stream, const std::function<void()>& body, int warm_ups = 2,
            std::string_view name = {});

    void launch() const;         // on the stream of the recording
    std::uint64_t size() const;  // number of kernels, copies and fills
    Stream stream() const;
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    struct State;
    State& need() const;
    std::shared_ptr<State> state_;
};

// Whether work of this thread on the device is recorded: done not now but at each launch.
bool is_recorded(Device device);

// Whether a recording owns the memory: each launch writes it, and it is undefined before the first.
bool is_of_recording(const Array& array);

}  // namespace catena
