// When a run began and ended, and what it wrote.
#include "device/device_state.hpp"
#include "device/hooks.hpp"

#include <catena/diagnostics/call_observer.hpp>
#include <catena/diagnostics/named_call.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <new>

namespace catena {
namespace {

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

constinit std::atomic<CallObserver*> current{nullptr};

void wait(Queue& queue, const CallObserver& observer) {
    const bool recorded = queue.recording.load(std::memory_order_relaxed) != nullptr;
    if (queue.async && !recorded && observer.waits()) queue.finish();
}

std::int64_t begin(Queue& queue) noexcept {
    const CallObserver* const observer = call_observer();
    if (!observer) return 0;
    wait(queue, *observer);  // work that was launched before is not this kernel's time
    return call_time();
}

void tell(Queue& queue, std::int64_t began, KernelCall call) {
    CallObserver* const observer = call_observer();
    if (!observer || !began) return;
    wait(queue, *observer);
    call.end = call_time();
    call.begin = began;
    call.device = Device(&queue.device);
    call.memory = static_cast<std::uint64_t>(call.device.memory().in_use);
    observer->called(call);
}

void end(Queue& queue, std::int64_t began, const catena_kernel& kernel,
         std::span<const catena_call* const> calls) noexcept {
    KernelCall told{};
    told.function = calls[0]->function;
    told.kernel = &kernel;
    told.phase = calls[0]->phase;
    told.lists = static_cast<std::uint32_t>(calls.size());
    for (const catena_call* call : calls) told.bytes += bytes_written(*call);
    tell(queue, began, told);
}

constexpr RunHook hook{begin, end};

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

void set_call_observer(CallObserver* observer) noexcept {
    current.store(observer, std::memory_order_release);
    run_hook.store(observer ? &hook : nullptr, std::memory_order_release);
}
CallObserver* call_observer() noexcept { return current.load(std::memory_order_acquire); }

NamedCall::NamedCall(Queue& queue, CallName name, const char* kind) noexcept
    : queue_(queue), name_(name), kind_(kind), began_(begin(queue)) {}

void NamedCall::end(std::uint64_t bytes) const noexcept try {
    if (!began_) return;
    const Named& what = named(name_.text(), kind_);
    KernelCall told{};
    told.function = &what.function;
    told.kernel = &what.kernel;
    told.phase = CATENA_PHASE_FORWARD;
    told.lists = 1;
    told.bytes = bytes;
    tell(queue_, began_, told);
} catch (const std::bad_alloc&) {
}

}  // namespace catena
