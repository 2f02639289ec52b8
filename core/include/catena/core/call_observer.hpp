// Watching kernels at work: for profiles and traces.
#pragma once

#include <catena/abi/function.h>
#include <catena/abi/kernel.h>
#include <catena/core/device.hpp>

#include <cstdint>

namespace catena {

// One run of a kernel. A call into an extension that has a name, as kernels from formulas have, is one
// too: its function and its kernel have names and nothing else, and its kernel belongs to no plugin.
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
    // Whether a device that works on after its calls have returned is waited for, so that `end` is the end
    // of the work and not of the call. Work that is recorded is never waited for.
    virtual bool waits() const noexcept { return true; }
};

// From now on this one sees all calls of all threads, or none does (null). It must live until another has
// taken its place and the calls that were under way have ended. What a recording launches is not a call.
void set_call_observer(CallObserver* observer) noexcept;
CallObserver* call_observer() noexcept;

}  // namespace catena
