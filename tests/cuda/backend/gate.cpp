// A function of the host that a stream waits for, given to the emulator directly.
#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "host.hpp"

namespace cuda_test {

struct Gate::State {
    std::atomic<bool> open = false;
};

// The state is left to the stream, which may be late.
Gate::Gate(catena_stream* stream) : state_(new State) {
    const auto wait = [](void* user) {
        auto* const state = static_cast<State*>(user);
        while (!state->open) std::this_thread::sleep_for(std::chrono::microseconds(50));
        delete state;
    };
    REQUIRE(cudaLaunchHostFunc(reinterpret_cast<cudaStream_t>(stream), wait, state_) ==
            cudaSuccess);
}

void Gate::go() {
    if (state_ == nullptr) return;
    state_->open = true;
    state_ = nullptr;
}

}  // namespace cuda_test
