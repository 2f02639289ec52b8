// When a run began and ended, and what it wrote.
#include "observed_call.hpp"

#include "device_state.hpp"
#include "queue.hpp"

#include <catena/core/call_observer.hpp>

#include <chrono>

namespace catena {
namespace {

std::int64_t now() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

std::uint64_t bytes_written(const catena_call& call) noexcept {
    std::uint64_t bytes = 0;
    if (call.phase == CATENA_PHASE_BACKWARD) {
        for (std::uint32_t i = 0; i < call.n_x; ++i) {
            if (call.gx[i] && call.req[i] != CATENA_REQ_NONE) bytes += call.gx[i]->nbytes;
        }
        return bytes;
    }
    for (std::uint32_t i = 0; i < call.n_y; ++i) bytes += call.y[i]->nbytes;
    for (std::uint32_t i = 0; call.saved && i < call.n_saved; ++i) bytes += call.saved[i]->nbytes;
    return bytes;
}

}  // namespace

std::atomic<CallObserver*> current_call_observer{nullptr};

void set_call_observer(CallObserver* observer) noexcept {
    current_call_observer.store(observer, std::memory_order_release);
}
CallObserver* call_observer() noexcept {
    return current_call_observer.load(std::memory_order_acquire);
}

void ObservedCall::begin() noexcept { begin_ = now(); }

void ObservedCall::report(const catena_kernel& kernel, const catena_call& call, Queue& queue,
                          std::uint32_t lists) const {
    const bool recorded = queue.recording.load(std::memory_order_relaxed) != nullptr;
    if (queue.async && !recorded && observer_->waits()) queue.finish();
    observer_->called({call.function, &kernel, static_cast<std::int32_t>(call.phase), lists,
                       Device(&queue.device), bytes_written(call), begin_, now()});
}

}  // namespace catena
