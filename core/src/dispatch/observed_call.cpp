// When a run began and ended, and what it wrote.
#include "dispatch/observed_call.hpp"

#include "device/device_state.hpp"
#include "device/queue.hpp"

#include <catena/core/call_observer.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <new>

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
    const catena_function& f = *call.function;
    for (std::uint32_t i = 0; i < call.n_x; ++i) {  // the last port takes all that follow
        const catena_port_spec* port = f.inputs[std::min(i, f.n_inputs - 1)];
        if (call.x[i] && (port->flags & CATENA_PORT_MUTATED)) bytes += call.x[i]->nbytes;
    }
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

void ObservedCall::wait() const noexcept {
    const bool recorded = queue_.recording.load(std::memory_order_relaxed) != nullptr;
    if (queue_.async && !recorded && observer_->waits()) queue_.finish();
}

void ObservedCall::begin() noexcept {
    wait();  // what was under way is not this kernel's time
    begin_ = now();
}

void ObservedCall::report(const catena_kernel& kernel,
                          std::span<const catena_call* const> calls) const {
    std::uint64_t bytes = 0;
    for (const catena_call* call : calls) bytes += bytes_written(*call);
    tell(*calls[0]->function, kernel, static_cast<std::int32_t>(calls[0]->phase), calls.size(),
         bytes);
}

void ObservedCall::tell(const catena_function& function, const catena_kernel& kernel,
                        std::int32_t phase, std::size_t lists, std::uint64_t bytes) const {
    wait();
    const std::int64_t end = now();
    const Device device(&queue_.device);
    observer_->called({&function, &kernel, phase, static_cast<std::uint32_t>(lists), device, bytes,
                       static_cast<std::uint64_t>(device.memory().in_use), begin_, end});
}

namespace {

// Descriptors with names alone, kept as long as the process: observers compare their addresses.
struct Named {
    catena_function function{};
    catena_kernel kernel{};
};

const Named& named(const std::string& name, const char* kind) {
    static auto* const all = new std::map<std::pair<const std::string*, std::string>, Named>;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    const auto [place, made] = all->try_emplace({&name, kind});
    Named& entry = place->second;
    if (made) {
        entry.function.struct_size = sizeof(catena_function);
        entry.function.name = name.c_str();
        entry.kernel.struct_size = sizeof(catena_kernel);
        entry.kernel.function = entry.function.name;
        entry.kernel.name = place->first.second.c_str();
    }
    return entry;
}

}  // namespace

void ObservedCall::end(const std::string& name, const char* kind,
                       std::uint64_t bytes) const noexcept try {
    if (!observer_) return;
    const Named& what = named(name, kind);
    tell(what.function, what.kernel, CATENA_PHASE_FORWARD, 1, bytes);
} catch (const std::bad_alloc&) {
}

}  // namespace catena
