// The last launches on each device: a ring that all threads write without a lock.
#include "diagnostics.hpp"

#include <catena/diagnostics/named_call.hpp>

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <new>
#include <set>

namespace catena {
namespace {

// A text that is made while others write is only nearly right.
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

void note(DeviceState& device, const void* called, CallLog::Kind kind) noexcept {
    void* log = device.call_log.load(std::memory_order_acquire);
    if (!log) {
        std::unique_ptr<CallLog> made(new (std::nothrow) CallLog);
        if (!made) return;
        if (device.call_log.compare_exchange_strong(log, made.get())) log = made.release();
    }
    static_cast<CallLog*>(log)->put(called, kind);
}

}  // namespace

CallName::CallName(std::string_view text) {
    static std::mutex mutex;
    static auto* const all = new std::set<std::string, std::less<>>;
    const std::lock_guard lock(mutex);
    text_ = &*all->emplace(text).first;
}

void note_launch(const Queue& queue, CallName name) noexcept {
    if (queue.async && !queue.recording.load(std::memory_order_relaxed))
        note(queue.device, &name.text(), CallLog::named);
}

void CoreDiagnostics::launches(DeviceState& device, const catena_function& function,
                               std::int32_t phase) noexcept {
    note(device, &function, phase != 0 ? CallLog::backward : CallLog::forward);
}

std::string CoreDiagnostics::last_launches(const DeviceState& device) {
    const void* log = device.call_log.load(std::memory_order_acquire);
    return log ? fmt::format("\nthe last calls on {}, newest first: {}", device.name,
                             static_cast<const CallLog*>(log)->newest_first())
               : "";
}

}  // namespace catena
