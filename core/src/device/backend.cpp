// Tables of backends, for programs.
#include <catena/core/backend.hpp>

#include "device/context.hpp"
#include "device/plugin_entry.hpp"
#include "device/plugin_step.hpp"

#include <catena/core/error.hpp>

namespace catena {
namespace {

DeviceState& need(Device device) {
    if (!device) throw InvalidError("[device] expected a device, got an empty handle");
    return *device.state();
}

}  // namespace

const void* backend_extension(Device device, const char* id) {
    const DeviceState& state = need(device);
    if (!state.table.get_extension) return nullptr;
    const PluginStep step(state.backend.plugin->file, "get_extension()");
    return state.table.get_extension(state.dev, id);
}

void* backend_device(Device device) { return need(device).dev; }

void call_backend(Device device, std::string_view what,
                  const std::function<catena_status(catena_ctx*, void*)>& call) {
    DeviceState& state = need(device);
    catena_ctx ctx;
    ctx.device = &state;
    const catena_status status = call(&ctx, state.dev);
    if (status != CATENA_OK) throw_failure(ctx, status, std::string(what));
}

}  // namespace catena
