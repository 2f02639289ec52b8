// The last calls on a device whose work may fail after they have returned.
#pragma once

#include <catena/abi/function.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace catena {

// A ring that any thread writes to without a lock. What it says while others write is near the truth.
class CallLog {
public:
    // The function lives for ever.
    void note(const catena_function& function, std::int32_t phase) noexcept {
        const std::uint32_t at = next_.fetch_add(1, std::memory_order_relaxed);
        calls_[at % depth].store(
            reinterpret_cast<std::uintptr_t>(&function) | static_cast<std::uintptr_t>(phase != 0),
            std::memory_order_relaxed);
    }
    // "[catena.exp forward], [catena.log backward]", newest first; "" if there was none.
    std::string newest_first() const;

private:
    static constexpr std::uint32_t depth = 8;
    static_assert(alignof(catena_function) > 1);  // a bit is free for the phase
    std::atomic<std::uint32_t> next_{0};
    std::atomic<std::uintptr_t> calls_[depth] = {};
};

}  // namespace catena
