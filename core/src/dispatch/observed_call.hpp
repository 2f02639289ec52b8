// A kernel's run, seen by who wants to know.
#pragma once

#include <catena/abi/kernel.h>

#include <cstdint>

#include <atomic>
#include <span>

namespace catena {

class CallName;
class CallObserver;
class Queue;

extern std::atomic<CallObserver*> current_call_observer;

// Around a run: begin before it, end after it. Costs a load where nobody watches.
class ObservedCall {
public:
    explicit ObservedCall(Queue& queue) noexcept
        : observer_(current_call_observer.load(std::memory_order_acquire)), queue_(queue) {
        if (observer_) [[unlikely]]
            begin();
    }
    // calls: the lists of inputs that one run took.
    void end(const catena_kernel& kernel, std::span<const catena_call* const> calls) const {
        if (observer_) [[unlikely]]
            report(kernel, calls);
    }

private:
    void wait() const noexcept;
    void begin() noexcept;
    void report(const catena_kernel& kernel, std::span<const catena_call* const> calls) const;
    friend class ObservedName;
    void tell(const catena_function& function, const catena_kernel& kernel, std::int32_t phase,
              std::size_t lists, std::uint64_t bytes) const;

    CallObserver* observer_;
    Queue& queue_;
    std::int64_t begin_ = 0;
};

// A call into an extension, as observers see it. Null if there is no memory for it.
class ObservedName;
ObservedName* observe_named(Queue& queue, CallName name, const char* kind) noexcept;
// Reports it, and deletes it.
void end_observed(ObservedName* observed, std::uint64_t bytes) noexcept;

}  // namespace catena
