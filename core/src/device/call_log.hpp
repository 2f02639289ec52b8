// The last calls on a device whose work may fail after they have returned.
#pragma once

#include <catena/core/extension_call.hpp>

#include <catena/abi/function.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace catena {

// A ring that any thread writes to without a lock. What it says while others write is near the truth.
class CallLog {
public:
    // The function is never freed.
    void note(const catena_function& function, std::int32_t phase) noexcept {
        put(&function, phase != 0 ? backward : forward);
    }
    void note(CallName name) noexcept { put(&name.text(), named); }
    // "[catena.exp forward], [muladd_fwd]", newest first; "" if there was none.
    std::string newest_first() const;

private:
    // In the low bits of what it is a call of.
    enum Kind : std::uintptr_t { forward, backward, named, mask };
    static_assert(alignof(catena_function) > mask && alignof(std::string) > mask);

    void put(const void* called, Kind kind) noexcept {
        const std::uint32_t at = next_.fetch_add(1, std::memory_order_relaxed);
        calls_[at % depth].store(reinterpret_cast<std::uintptr_t>(called) | kind,
                                 std::memory_order_release);
    }

    static constexpr std::uint32_t depth = 8;
    std::atomic<std::uint32_t> next_{0};
    std::atomic<std::uintptr_t> calls_[depth] = {};
};

}  // namespace catena
