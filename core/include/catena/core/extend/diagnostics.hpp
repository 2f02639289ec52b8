// Diagnostics and RunHook: what libraries above the core do with calls, errors and messages.
// FunctionInfo: the function of a call.
#pragma once

#include <catena/core/array.hpp>
#include <catena/core/tables.hpp>

namespace catena {

class GraphNode;

// What follows from the descriptor of a function.
class FunctionInfo {
public:
    explicit FunctionInfo(const catena_function& given);

    const catena_function descriptor;  // a copy; fields beyond an older plugin's struct are 0
    std::uint32_t min_inputs;          // counted up to the last port that is not optional
    bool variadic;
    bool mutates;                 // an input port is MUTATED
    std::vector<int> input_type;  // index of each port's type_var
    std::vector<int> output_type;
    int type_vars;

    // Returns the port that input i belongs to.
    std::size_t port(std::size_t i) const noexcept {
        return i < descriptor.n_inputs ? i : descriptor.n_inputs - 1;
    }
    std::uint32_t input_flags(std::size_t i) const noexcept {
        return descriptor.inputs[port(i)]->flags;
    }
    bool is_mutated(std::size_t i) const noexcept { return input_flags(i) & CATENA_PORT_MUTATED; }
    bool is_differentiable(std::size_t i) const noexcept {
        return !(input_flags(i) & CATENA_PORT_NON_DIFFERENTIABLE);
    }
    std::string input_name(std::size_t i) const;
};

// Describes inputs for messages: "x (2, 3) float32, W (4, 3) float32".
std::string describe_inputs(const FunctionInfo& function, std::span<ArrayBody* const> x);

// What catena::diagnostics adds: debug mode, observers, better messages. By default, nothing.
class Diagnostics {
public:
    // ---- debug mode
    virtual std::vector<void*> stack() { return {}; }  // the addresses of the callers
    virtual std::string to_string(std::span<void* const>) { return {}; }
    // Throws NanError if the array has a NaN. trace: where the call was made.
    virtual void check(const Array&, std::string_view /*function*/, std::string_view /*what*/,
                       std::span<void* const> /*trace*/) {}
    // Checks the results that callers see, and the inputs that the call wrote.
    virtual void check_forward(const FunctionInfo&, std::span<ArrayBody* const> /*x*/,
                               std::span<const Array> /*y*/) {}
    // Runs a step of a backward pass. gradient(i): the sum for input i so far, or an empty array.
    virtual void backward(const GraphNode&, std::span<void* const> /*trace*/,
                          const std::function<Array(std::size_t)>& /*gradient*/,
                          const std::function<void()>& step) {
        step();
    }

    // ---- messages
    // Suggests a function for an unknown name: "did you mean catena.relu?"; "" if none is similar.
    virtual std::string suggestion(std::string_view /*function*/) { return {}; }
    // Returns the kernels of loaded plugins whose function does not exist.
    virtual std::vector<KernelsWithoutFunction> kernels_without_function() { return {}; }
    // Warns once about pins in the environment that match nothing.
    virtual void report_pins() {}
    // Throws an error that lists the devices, for a device whose backend no plugin has.
    virtual void no_device(std::string_view /*name*/, std::string_view /*backend*/) {}
    // Throws an error that lists the kernels of the function. key: 4 bits of Dtype for each
    // type_var; declined: kernels for it exist, but their supports() returned false.
    virtual void no_kernel(const FunctionInfo&, std::span<ArrayBody* const> /*x*/, Device,
                           std::uint64_t /*key*/, bool /*declined*/) {}
    // Called before a launch that may fail after its call has returned.
    virtual void launches(Device, const catena_function&, std::int32_t /*phase*/) noexcept {}
    // Returns "\nthe last calls on ...", or "".
    virtual std::string last_launches(Device) { return {}; }
};

// Not inline: libraries may be built with hidden symbols.
extern std::atomic<Diagnostics*> registered_diagnostics;
inline Diagnostics& diagnostics() noexcept {
    return *registered_diagnostics.load(std::memory_order_acquire);
}

// Functions that are called around each run of a kernel. run_hook is null without an observer.
struct RunHook {
    std::int64_t (*begin)(Queue& queue) noexcept;
    // began: the result of begin(). calls: the calls that the run processed.
    void (*end)(Queue& queue, std::int64_t began, const catena_kernel& kernel,
                std::span<const catena_call* const> calls) noexcept;
};
extern std::atomic<const RunHook*> run_hook;

}  // namespace catena
