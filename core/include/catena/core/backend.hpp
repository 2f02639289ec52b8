// Access to a device's backend, for programs that use an extension's table directly.
#pragma once

#include <catena/core/device.hpp>

#include <catena/abi/base.h>

#include <functional>
#include <string_view>

namespace catena {

// The table that the backend provides under an id ("catena.threads/1"), or null. Stays valid.
const void* backend_extension(Device device, const char* id);

// The result of the backend's open(), which its calls take as dev.
void* backend_device(Device device);

// Runs a call of the backend and throws its error with the prefix "[what] ":
//     call_backend(device, "sharing", [&](catena_ctx* ctx, void* dev) {
//         return table->memory_export(ctx, dev, data, &handle, &offset);
//     });
void call_backend(Device device, std::string_view what,
                  const std::function<catena_status(catena_ctx*, void*)>& call);

}  // namespace catena
