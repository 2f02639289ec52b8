// Tells the observer of calls about runs of kernels.
#pragma once

#include <catena/abi/kernel.h>

#include <cstdint>

#include <atomic>
#include <span>
#include <string>

namespace catena {

class CallObserver;
class Queue;

extern std::atomic<CallObserver*> current_call_observer;

// Around a run: made before it, end() after it. Costs a load where nobody watches.
class ObservedCall {
public:
    explicit ObservedCall(Queue& queue) noexcept
        : observer_(current_call_observer.load(std::memory_order_acquire)), queue_(queue) {
        if (observer_) [[unlikely]]
            begin();
    }
    // Of a run that began earlier.
    ObservedCall(Queue& queue, std::int64_t began) noexcept
        : observer_(current_call_observer.load(std::memory_order_acquire)),
          queue_(queue),
          begin_(began) {}
    std::int64_t began() const noexcept { return begin_; }  // 0 where nobody watches

    // calls: the lists of inputs that one run took.
    void end(const catena_kernel& kernel, std::span<const catena_call* const> calls) const {
        if (observer_) [[unlikely]]
            report(kernel, calls);
    }
    // Of a call into an extension, which wrote so many bytes. Not reported without memory.
    void end(const std::string& name, const char* kind, std::uint64_t bytes) const noexcept;

private:
    void wait() const noexcept;
    void begin() noexcept;
    void report(const catena_kernel& kernel, std::span<const catena_call* const> calls) const;
    void tell(const catena_function& function, const catena_kernel& kernel, std::int32_t phase,
              std::size_t lists, std::uint64_t bytes) const;

    CallObserver* observer_;
    Queue& queue_;
    std::int64_t begin_ = 0;
};

}  // namespace catena
