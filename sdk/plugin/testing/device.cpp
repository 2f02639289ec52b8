// Devices of backends.
#include "testing/device.hpp"

#include <map>

namespace catena::testing::detail {

const Device* Device::find(const catena_backend& backend, World& world) {
    static std::map<const catena_backend*, std::unique_ptr<Device>> all;
    const auto [entry, added] = all.try_emplace(&backend);
    if (added) {
        catena_ctx ctx{&world, {}, {}};
        std::int32_t n = 0;
        if (backend.count(&ctx, &n) == CATENA_OK && n > 0)
            entry->second = std::make_unique<Device>(backend, ctx);
    }
    return entry->second.get();
}
Device::Device(const catena_backend& backend, catena_ctx& ctx) : table(backend) {
    check(table.open(&ctx, 0, &dev), ctx);
    if ((table.flags & CATENA_BACKEND_ASYNC) != 0)
        check(table.stream_create(&ctx, dev, &stream), ctx);
}
Device::~Device() {
    if (stream != nullptr) table.stream_destroy(dev, stream);
    table.close(dev);
}
void Device::copy(catena_ctx& ctx, void* to, const void* from, std::size_t bytes,
                  int direction) const {
    check(table.copy(&ctx, dev, stream, to, from, bytes, direction), ctx);
}
void Device::sync(catena_ctx& ctx) const {
    check(stream != nullptr ? table.stream_sync(&ctx, dev, stream) : table.sync(&ctx, dev), ctx);
}
void Device::check(catena_status status, const catena_ctx& ctx) const {
    if (status == CATENA_OK) return;
    throw Failure(status, "[" + std::string(table.name) + ":0] " +
                              (ctx.error.empty() ? "it gave no reason" : ctx.error));
}

Placed::Placed(const Device& device, catena_ctx& ctx, Array& array)
    : device_(device), ctx_(ctx), array_(array), bytes_(array.memory_bytes()) {
    device.check(device.table.alloc(&ctx, device.dev, device.stream, bytes_, &memory_), ctx);
    try {
        device.copy(ctx, memory_, array.memory(), bytes_, CATENA_COPY_HOST_TO_DEVICE);
    } catch (...) {
        device_.table.free(device_.dev, device_.stream, memory_, bytes_);
        throw;
    }
}
Placed::~Placed() { device_.table.free(device_.dev, device_.stream, memory_, bytes_); }
void Placed::fetch() {
    device_.copy(ctx_, array_.memory(), memory_, bytes_, CATENA_COPY_DEVICE_TO_HOST);
}

}  // namespace catena::testing::detail
