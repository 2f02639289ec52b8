// What the parts of the plugin share.
#pragma once

#include <catena/plugin.hpp>

#include <functional>

namespace river {

inline const catena_host* host = nullptr;
extern const catena_backend backend;

// Gives work to the call's stream.
catena_status give(catena_ctx* ctx, const catena_call* call, std::function<void()> work);
// Where the device's code finds memory.
void* near(const catena_call* call, const catena_tensor* tensor);
void* near(const catena_call* call, const void* address);

}  // namespace river
