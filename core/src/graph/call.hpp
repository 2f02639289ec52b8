// Calls of functions on variables and arrays, by kernels or as compositions.
#pragma once

#include "dispatch/dispatch.hpp"

namespace catena {

using Results = SmallVector<Variable, 2>;

// Calls a function on variables, and records the graph if an input requires a gradient.
Results call_function(FunctionEntry& function, const BoundAttributes& attributes,
                      std::span<const Variable* const> inputs);

// Calls a function on arrays, in the thread's configuration. Returns all outputs, hidden ones included.
ForwardResult forward_arrays(FunctionEntry& function, const BoundAttributes& attributes,
                             std::span<const Array> inputs);

// Returns the outputs as arrays without memory. Computes nothing.
SmallVector<Array, 2> infer_arrays(FunctionEntry& function, const BoundAttributes& attributes,
                                   std::span<const Array> inputs);

// A composition that runs in this thread.
struct Composition {
    FunctionEntry& function;
    std::span<const Variable* const> x;  // null or empty: a missing one
    Composition* const outer;
    SmallVector<Variable, 8> made;  // by the calls so far
    SmallVector<std::unique_ptr<char[]>, 1> staging;
};

inline catena_var* handle(const Variable* variable) noexcept {
    return variable ? reinterpret_cast<catena_var*>(variable->node_ref().get()) : nullptr;
}

// Runs the composition of a function on variables, one for each port, null or empty for a missing input.
// Returns one variable for each output, which calls of the composition made.
Results compose(FunctionEntry& function, const BoundAttributes& attributes,
                std::span<const Variable* const> x, DeviceState& device, std::uint32_t flags);

// Returns a variable of x's array, computed from x: its gradient is that of one input of a call alone.
Variable copy_in_graph(const Variable& x);

// Throws the error of a call within the composition as an error of its function.
[[noreturn]] void throw_within(const Composition& composition, const FunctionEntry& callee,
                               std::span<const Variable* const> x, const Error& error);

// The table of services that every plugin gets.
const catena_host& host_table() noexcept;

// Calls of this thread that a node records now belong to this group.
extern thread_local constinit const CallGroup* current_group;

}  // namespace catena
