// Calls of functions, on arrays and on variables.
#pragma once

#include "registry/attributes.hpp"
#include "registry/registry.hpp"

#include <catena/core/config.hpp>
#include <catena/core/variable.hpp>

#include <span>
#include <vector>

namespace catena {

using Results = SmallVector<Variable, 2>;

// What a forward run leaves behind.
struct ForwardResult {
    SmallVector<Array, 2> y;
    SmallVector<Array, 2> saved;
    const catena_kernel* paired = nullptr;  // the backward bound to the kernel that ran
    DeviceState* device = nullptr;          // where it ran; y is on the inputs' device
    std::uint64_t key = 0;
    std::uint32_t flags = 0;  // CATENA_CALL_*
};

// A bool array beside numbers counts as 0 and 1: where a bool input has the type variable of one that
// is not bool, numbers[i] is x[i] in that one's dtype, else none. Returns whether there are any.
bool masks_as_numbers(const FunctionEntry& function, std::span<ArrayBody* const> x,
                      SmallVector<Array, 6>& numbers);

// x: one entry for each port, null for a missing optional one.
ForwardResult run_forward(FunctionEntry& function, const BoundAttributes& attributes,
                          std::span<ArrayBody* const> x, const Config& now, bool needs_backward);

// Calls on variables; records the graph if anything wants a gradient.
Results call_function(FunctionEntry& function, const BoundAttributes& attributes,
                      std::span<const Variable* const> inputs);

// Calls on arrays, in the thread's configuration; all outputs, hidden ones included.
ForwardResult forward_arrays(FunctionEntry& function, const BoundAttributes& attributes,
                             std::span<const Array> inputs);

// there += gradient, by the function that plugins declared as the addition. False if no kernel of it
// can add in place.
bool add_in_place(const Array& there, const Array& gradient);

}  // namespace catena
