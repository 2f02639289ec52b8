// A kernel's run, seen by who wants to know.
#pragma once

#include <catena/abi/kernel.h>

#include <cstdint>

#include <atomic>
#include <span>

namespace catena {

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

    CallObserver* observer_;
    Queue& queue_;
    std::int64_t begin_ = 0;
};

}  // namespace catena
