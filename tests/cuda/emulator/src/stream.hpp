// Queues of work, each with a thread of its own, and events in them.
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

namespace catena_emulator {

// Counted as long as it is there.
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
    struct Shared* shared = nullptr;  // of events that other processes know

    void complete(std::uint64_t generation);
    void wait(std::uint64_t generation);
    bool done(std::uint64_t generation);
};

using Work = std::function<void()>;

struct Capture {
    Stream* origin = nullptr;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
    std::thread::id thread;  // that began it
    bool invalid = false;
    std::vector<Work> nodes;
    std::vector<Stream*> streams;
};

struct Stream : std::enable_shared_from_this<Stream> {
    Device* device = nullptr;
    bool blocking = true;              // waits for stream 0, which waits for it
    std::shared_ptr<Capture> capture;  // guarded by api()

    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Work> queue;
    std::uint64_t submitted = 0;
    std::uint64_t completed = 0;
    bool closed = false;

    void start();
    void push(Work work);
    // What was pushed up to now is done. Not while api() is held.
    void drain();
    void wait_for(std::uint64_t n);
    bool idle();

private:
    void run();
};

std::shared_ptr<Stream> make_stream(Device& device, bool blocking);
// nullptr if there is no such stream; nullptr as a handle is the current device's stream 0.
std::shared_ptr<Stream> find_stream(cudaStream_t handle);
// Puts work on the stream, or into the graph that is captured from it; api() is held.
void submit(Stream& stream, Work work);
// The capture that forbids an operation of this thread that is no work of a stream, if there is one.
bool capture_forbids();

}  // namespace catena_emulator

struct CUevent_st {
    std::shared_ptr<catena_emulator::EventState> state;
    unsigned flags;
    int device;
    std::shared_ptr<catena_emulator::Capture> capture;  // where it was last recorded, if in one
    catena_emulator::Live live = {};
};
