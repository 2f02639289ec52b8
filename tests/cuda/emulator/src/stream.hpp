// Streams, which are queues of work with a thread each, and events.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "device.hpp"
#include "emulator/control.h"
#include "order.hpp"

namespace catena_emulator {

// Counts as a live object while it exists.
struct Live {
    Live() { catena_emulator_live(1); }
    ~Live() { catena_emulator_live(-1); }
    Live(const Live&) = delete;
    Live& operator=(const Live&) = delete;
};

struct EventState {
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t recorded = 0;  // generation; guarded by api()
    std::uint64_t completed = 0;
    std::chrono::steady_clock::time_point time;
    Clock clock;                      // of its last recording; guarded by api()
    struct Shared* shared = nullptr;  // only of events that are shared with other processes

    void complete(std::uint64_t generation);
    void wait(std::uint64_t generation);
    bool done(std::uint64_t generation);
};

using Work = std::function<void()>;

struct Capture {
    Stream* origin = nullptr;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    std::thread::id thread;  // the thread that began it
    bool invalid = false;
    std::vector<Work> nodes;
    std::vector<Stream*> streams;
};

struct Stream : std::enable_shared_from_this<Stream> {
    Device* device = nullptr;
    bool blocking = true;              // synchronizes with stream 0
    std::shared_ptr<Capture> capture;  // guarded by api()
    std::size_t index = 0;             // among all streams, in clocks
    Clock clock;                       // what is over before its next work; guarded by api()

    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::pair<Operation, Work>> queue;
    std::uint64_t submitted = 0;
    std::uint64_t completed = 0;
    bool closed = false;

    void start();
    void push(Work work, Operation operation = {});
    // Waits for all work that was pushed before. Do not call it with api() locked.
    void drain();
    void wait_for(std::uint64_t n);
    bool idle();

private:
    void run();
};

std::shared_ptr<Stream> make_stream(Device& device, bool blocking);
// Returns nullptr if there is no such stream. A null handle means stream 0 of the current device.
std::shared_ptr<Stream> find_stream(cudaStream_t handle);
// Adds work to the stream, or to the graph that it is captured into. The caller holds api().
void submit(Stream& stream, Work work);
// Whether a capture forbids this thread an operation outside of streams; invalidates that capture.
bool capture_forbids();

}  // namespace catena_emulator

struct CUevent_st {
    std::shared_ptr<catena_emulator::EventState> state;
    unsigned flags;
    int device;
    std::shared_ptr<catena_emulator::Capture> capture;  // of its last recording, if any
    catena_emulator::Live live = {};
};
