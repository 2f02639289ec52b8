// Reports runs of kernels to the observer; keeps the last launches on each device.
#include "diagnostics.hpp"

#include <catena/core/extend/queue.hpp>
#include <catena/diagnostics/call_observer.hpp>
#include <catena/diagnostics/named_call.hpp>

#include <set>

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

void wait(Queue& queue) {
    const bool recorded = queue.recording.load(std::memory_order_relaxed) != nullptr;
    if (queue.async && !recorded) queue.finish();
}

std::int64_t begin(Queue& queue) noexcept {
    if (!call_observer()) return 0;
    wait(queue);  // work that was launched before is not this kernel's time
    return call_time();
}

void tell(Queue& queue, std::int64_t began, KernelCall call) {
    CallObserver* const observer = call_observer();
    if (!observer || !began) return;
    wait(queue);
    call.end = call_time();
    call.begin = began;
    call.group = running_group();
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

// A ring that all threads write without a lock. A text that is made while others write is not exact.
class CallLog {
public:
    // In the low bits of the address of the function or name. Functions and names are never freed.
    enum Kind : std::uintptr_t { forward, backward, named, mask };
    static_assert(alignof(catena_function) > mask && alignof(std::string) > mask);

    void put(const void* called, Kind kind) noexcept {
        const std::uint32_t at = next_.fetch_add(1, std::memory_order_relaxed);
        calls_[at % depth].store(reinterpret_cast<std::uintptr_t>(called) | kind,
                                 std::memory_order_release);
    }
    // "[catena.exp forward], [muladd_fwd]", newest first; "" if there was none.
    std::string newest_first() const {
        std::string text;
        const std::uint32_t next = next_.load(std::memory_order_relaxed);
        for (std::uint32_t back = 1; back <= depth; ++back) {
            const std::uintptr_t call =
                calls_[(next - back) % depth].load(std::memory_order_acquire);
            if (!call) break;
            const std::uintptr_t kind = call & mask, called = call & ~std::uintptr_t{mask};
            if (!text.empty()) text += ", ";
            if (kind == named) text += fmt::format("[{}]", *reinterpret_cast<std::string*>(called));
            else
                text += fmt::format("[{} {}]", reinterpret_cast<catena_function*>(called)->name,
                                    kind == backward ? "backward" : "forward");
        }
        return text;
    }

private:
    static constexpr std::uint32_t depth = 8;
    std::atomic<std::uint32_t> next_{0};
    std::atomic<std::uintptr_t> calls_[depth] = {};
};

// The log of a device, or null if more devices have one than there is room for. Devices are never freed.
CallLog* log_of(Device device) noexcept {
    struct Place {
        std::atomic<DeviceState*> device{nullptr};
        CallLog log;
    };
    static Place places[64];
    for (Place& place : places) {
        DeviceState* there = place.device.load(std::memory_order_acquire);
        if (!there && place.device.compare_exchange_strong(there, device.state()))
            return &place.log;
        if (there == device.state()) return &place.log;
    }
    return nullptr;
}

void note(Device device, const void* called, CallLog::Kind kind) noexcept {
    if (CallLog* log = log_of(device)) log->put(called, kind);
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

// ---- the last launches on each device

CallName::CallName(std::string_view text) {
    static std::mutex mutex;
    static auto* const all = new std::set<std::string, std::less<>>;
    const std::lock_guard lock(mutex);
    text_ = &*all->emplace(text).first;
}

void note_launch(const Queue& queue, CallName name) noexcept {
    if (queue.async && !queue.recording.load(std::memory_order_relaxed))
        note(Device(&queue.device), &name.text(), CallLog::named);
}

void CoreDiagnostics::launches(Device device, const catena_function& function,
                               std::int32_t phase) noexcept {
    note(device, &function, phase != 0 ? CallLog::backward : CallLog::forward);
}

std::string CoreDiagnostics::last_launches(Device device) {
    const CallLog* log = log_of(device);
    const std::string calls = log ? log->newest_first() : "";
    return calls.empty()
               ? ""
               : fmt::format("\nthe last calls on {}, newest first: {}", device.name(), calls);
}

}  // namespace catena
