// Functions shared by the source files of the plugin "river".
#pragma once

#include <catena/plugin.hpp>

#include <functional>

namespace river {

inline const catena_host* host = nullptr;
extern const catena_backend backend;

// Queues work on the call's stream.
catena_status give(catena_ctx* ctx, const catena_call* call, std::function<void()> work);
// Returns the address at which the device's code accesses the memory.
void* near(const catena_call* call, const catena_tensor* tensor);
void* near(const catena_call* call, const void* address);

}  // namespace river
