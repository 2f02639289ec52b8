// BatchedCall: a call that runs together with others. For libraries that extend the core.
#pragma once

#include <catena/core/extend/queue.hpp>
#include <catena/core/plugin_function.hpp>

namespace catena {

// The values of its attributes, in the order of the schema.
const catena_value* values_of(const PluginFunction& function) noexcept;

// A checked forward call of a function without outputs. The arrays must live until it has run.
struct BatchedCall {
    SmallVector<ArrayBody*, 6> x;
    SmallVector<const catena_tensor*, 6> tensors;
    Queue* queue = nullptr;
    const catena_kernel* kernel = nullptr;  // null: the call must run by itself
    catena_call call{};
};
// Throws as PluginFunction::forward() for wrong inputs.
BatchedCall check_call(const PluginFunction& function, std::span<const Array> inputs);
// Launches calls of one kernel on one queue with `run`, in order with other uses of the arrays.
void run_together(
    const PluginFunction& function, std::span<BatchedCall> calls,
    const std::function<catena_status(catena_ctx*, std::span<const catena_call* const>)>& run);

}  // namespace catena
