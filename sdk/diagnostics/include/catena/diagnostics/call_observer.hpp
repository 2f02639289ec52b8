// CallObserver: observes kernels as they run, for profiles and traces.
#pragma once

#include <catena/abi/kernel.h>
#include <catena/core/graph.hpp>

#include <chrono>

namespace catena {

// One run of a kernel. A named call of an extension, such as a kernel from a formula, counts as one
// too: its function and kernel have only a name, and no plugin owns the kernel.
struct KernelCall {
    const catena_function* function;
    const catena_kernel* kernel;
    std::int32_t phase;   // CATENA_PHASE_*
    std::uint32_t lists;  // of inputs processed together: more than 1 in updates of many parameters
    Device device;
    std::uint64_t bytes;      // written: results, saved state, gradients, updated inputs
    std::uint64_t memory;     // bytes in use on the device after the call
    std::int64_t begin, end;  // as call_time() has them
    const CallGroup* group;   // the composition that runs, or whose gradient is computed; or null
};
// Nanoseconds of std::chrono::steady_clock.
inline std::int64_t call_time() noexcept {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class CallObserver {
public:
    virtual ~CallObserver() = default;
    // Called after the work of each run, also failed ones, in the thread that ran it. Recorded work
    // is not waited for. Must not throw.
    virtual void called(const KernelCall& call) noexcept = 0;
};

// Sets the observer of all calls in all threads; null removes it. It must live until another is set
// and pending calls have ended. Work that a recording launches is not observed.
void set_call_observer(CallObserver* observer) noexcept;
CallObserver* call_observer() noexcept;

}  // namespace catena
