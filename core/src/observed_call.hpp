// A kernel's run, seen by who wants to know.
#pragma once

#include <catena/abi/kernel.h>

#include <cstdint>

#include <atomic>

namespace catena {

class CallObserver;
class Queue;

extern std::atomic<CallObserver*> current_call_observer;

// Around a run: begin before it, end after it. Costs a load where nobody watches.
class ObservedCall {
public:
    ObservedCall() noexcept : observer_(current_call_observer.load(std::memory_order_acquire)) {
        if (observer_) [[unlikely]]
            begin();
    }
    void end(const catena_kernel& kernel, const catena_call& call, Queue& queue,
             std::uint32_t lists = 1) const {
        if (observer_) [[unlikely]]
            report(kernel, call, queue, lists);
    }

private:
    void begin() noexcept;
    void report(const catena_kernel& kernel, const catena_call& call, Queue& queue,
                std::uint32_t lists) const;

    CallObserver* observer_;
    std::int64_t begin_ = 0;
};

}  // namespace catena
