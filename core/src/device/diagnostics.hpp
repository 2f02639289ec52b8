// What catena::diagnostics adds to the core: debug mode, observers of calls, better messages. Without that
// library these functions do nothing.
#pragma once

#include <catena/core/array.hpp>

#include <catena/abi/kernel.h>

#include <atomic>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace catena {

class FunctionEntry;
class GraphNode;

class Diagnostics {
public:
    // ---- debug mode
    virtual std::vector<void*> stack() { return {}; }  // the addresses of the callers
    virtual std::string to_string(std::span<void* const>) { return {}; }
    // Throws NanError if the array has a NaN. trace: where the call was made.
    virtual void check(const Array&, std::string_view /*function*/, std::string_view /*what*/,
                       std::span<void* const> /*trace*/) {}
    // The same for the results that callers see, and for the inputs that the call wrote.
    virtual void check_forward(const FunctionEntry&, std::span<ArrayBody* const> /*x*/,
                               std::span<const Array> /*y*/) {}
    // Runs a step of a backward pass. gradient(i): that of input i so far, or none.
    virtual void backward(const GraphNode&, std::span<void* const> /*trace*/,
                          const std::function<Array(std::size_t)>& /*gradient*/,
                          const std::function<void()>& step) {
        step();
    }

    // ---- messages
    // The registered function that was probably meant; "" if none is near.
    virtual std::string nearest(std::string_view /*function*/, bool /*internal*/) { return {}; }
    // Of `known`, the same.
    virtual std::string nearest(std::string_view /*name*/, std::span<const std::string> /*known*/) {
        return {};
    }
    // Throws an error that lists the kernels of the function. key: 4 bits of Dtype for each type_var;
    // declined: kernels for it exist, but their supports() returned false.
    virtual void no_kernel(const FunctionEntry&, std::span<ArrayBody* const> /*x*/,
                           const DeviceState&, std::uint64_t /*key*/, bool /*declined*/) {}
    // Before a launch that may fail after its call has returned.
    virtual void launches(DeviceState&, const catena_function&, std::int32_t /*phase*/) noexcept {}
    // "\nthe last calls on ...", or "".
    virtual std::string last_launches(const DeviceState&) { return {}; }
};

// Not inline: libraries may be built with hidden symbols.
extern std::atomic<Diagnostics*> registered_diagnostics;
inline Diagnostics& diagnostics() noexcept {
    return *registered_diagnostics.load(std::memory_order_acquire);
}

// Around each run of a kernel; null unless an observer is set.
struct RunHook {
    std::int64_t (*begin)(Queue& queue) noexcept;
    // began: the result of begin(); calls: the lists of inputs that the run processed.
    void (*end)(Queue& queue, std::int64_t began, const catena_kernel& kernel,
                std::span<const catena_call* const> calls) noexcept;
};
extern std::atomic<const RunHook*> run_hook;

}  // namespace catena
