// What a device's backend can do beyond its arrays and functions: for programs that use a table of an
// extension by themselves.
#pragma once

#include <catena/core/device.hpp>

#include <catena/abi/base.h>

#include <functional>
#include <string_view>

namespace catena {

// The table that the backend offers under an id ("catena.threads/1"), or null. Valid for ever.
const void* backend_extension(Device device, const char* id);

// What the backend's open() returned: the dev of its calls.
void* backend_device(Device device);

// Runs a call of the backend; throws what it says went wrong, "[what] " before it:
//     call_backend(device, "sharing", [&](catena_ctx* ctx, void* dev) {
//         return table->memory_export(ctx, dev, data, &handle, &offset);
//     });
void call_backend(Device device, std::string_view what,
                  const std::function<catena_status(catena_ctx*, void*)>& call);

}  // namespace catena
