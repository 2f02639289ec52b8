// Devices other than host memory: those of backends that the loaded plugins bring. Arrays are moved
// there for a call with the guards around them, and back.
#pragma once

#include <map>

#include "catena/testing/world.hpp"

namespace catena::testing::detail {

class Device {
public:
    // Opened once in a process, and closed at its end. Null if there is none.
    static const Device* find(const catena_backend& backend, World& world) {
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
    Device(const catena_backend& backend, catena_ctx& ctx) : table(backend) {
        check(table.open(&ctx, 0, &dev), ctx);
        if ((table.flags & CATENA_BACKEND_ASYNC) != 0)
            check(table.stream_create(&ctx, dev, &stream), ctx);
    }
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    ~Device() {
        if (stream != nullptr) table.stream_destroy(dev, stream);
        table.close(dev);
    }

    void copy(catena_ctx& ctx, void* to, const void* from, std::size_t bytes, int direction) const {
        check(table.copy(&ctx, dev, stream, to, from, bytes, direction), ctx);
    }
    void sync(catena_ctx& ctx) const {
        check(stream != nullptr ? table.stream_sync(&ctx, dev, stream) : table.sync(&ctx, dev),
              ctx);
    }
    void check(catena_status status, const catena_ctx& ctx) const {
        if (status == CATENA_OK) return;
        throw Failure(status, "[" + std::string(table.name) + ":0] " +
                                  (ctx.error.empty() ? "it gave no reason" : ctx.error));
    }

    const catena_backend& table;
    void* dev = nullptr;
    catena_stream* stream = nullptr;
};

// An array's place on a device, for one call. The array may go before it.
class Placed {
public:
    Placed(const Device& device, catena_ctx& ctx, Array& array)
        : device_(device), ctx_(ctx), array_(array), bytes_(array.memory_bytes()) {
        device.check(device.table.alloc(&ctx, device.dev, device.stream, bytes_, &memory_), ctx);
        try {
            device.copy(ctx, memory_, array.memory(), bytes_, CATENA_COPY_HOST_TO_DEVICE);
        } catch (...) {
            device_.table.free(device_.dev, device_.stream, memory_, bytes_);
            throw;
        }
    }
    Placed(const Placed&) = delete;
    Placed& operator=(const Placed&) = delete;
    ~Placed() { device_.table.free(device_.dev, device_.stream, memory_, bytes_); }
    // The address of the first element, less the array's shift.
    std::byte* data() const { return static_cast<std::byte*>(memory_) + Array::guard; }
    void fetch() {
        device_.copy(ctx_, array_.memory(), memory_, bytes_, CATENA_COPY_DEVICE_TO_HOST);
    }

private:
    const Device& device_;
    catena_ctx& ctx_;
    Array& array_;
    std::size_t bytes_;
    void* memory_ = nullptr;
};

}  // namespace catena::testing::detail
