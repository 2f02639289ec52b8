// Watching kernels at work: for profiles and traces.
#pragma once

#include <catena/abi/function.h>
#include <catena/abi/kernel.h>
#include <catena/core/device.hpp>

#include <cstdint>

namespace catena {

// One run of a kernel. A named call into an extension counts as one, too, such as a kernel from a
// formula: its function and kernel have a name and nothing else, and no plugin owns the kernel.
struct KernelCall {
    const catena_function* function;
    const catena_kernel* kernel;
    std::int32_t phase;  // CATENA_PHASE_*
    std::uint32_t
        lists;  // of inputs that it took together: more than one in updates of many parameters
    Device device;
    std::uint64_t bytes;      // of what it wrote: results, saved state, gradients, updated inputs
    std::uint64_t memory;     // bytes that arrays and kernels hold on the device after it
    std::int64_t begin, end;  // nanoseconds of std::chrono::steady_clock
};

class CallObserver {
public:
    virtual ~CallObserver() = default;
    // After each run, in the thread that ran it, failed ones too. Must not throw.
    virtual void called(const KernelCall& call) noexcept = 0;
    // Whether to wait for the work of asynchronous devices, so that `end` is the end of the work and
    // not the return of the call. Nobody waits for work that is recorded.
    virtual bool waits() const noexcept { return true; }
};

// Makes this the one observer of all calls in all threads; null: there is none. It must live until
// another is set and the calls under way have ended. Work that a recording launches is not a call.
void set_call_observer(CallObserver* observer) noexcept;
CallObserver* call_observer() noexcept;

}  // namespace catena
