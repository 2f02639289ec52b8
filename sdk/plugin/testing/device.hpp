// Devices other than host memory: those of backends that the loaded plugins bring. Arrays are moved
// there for a call with the guards around them, and back.
#pragma once

#include "catena/testing/world.hpp"

namespace catena::testing::detail {

class Device {
public:
    // Opened once in a process, and closed at its end. Null if there is none.
    static const Device* find(const catena_backend& backend, World& world);
    Device(const catena_backend& backend, catena_ctx& ctx);
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    ~Device();

    void copy(catena_ctx& ctx, void* to, const void* from, std::size_t bytes, int direction) const;
    void sync(catena_ctx& ctx) const;
    void check(catena_status status, const catena_ctx& ctx) const;

    const catena_backend& table;
    void* dev = nullptr;
    catena_stream* stream = nullptr;
};

// An array's place on a device, for one call. The array may go before it.
class Placed {
public:
    Placed(const Device& device, catena_ctx& ctx, Array& array);
    Placed(const Placed&) = delete;
    Placed& operator=(const Placed&) = delete;
    ~Placed();
    // The address of the first element, less the array's shift.
    std::byte* data() const { return static_cast<std::byte*>(memory_) + Array::guard; }
    void fetch();

private:
    const Device& device_;
    catena_ctx& ctx_;
    Array& array_;
    std::size_t bytes_;
    void* memory_ = nullptr;
};

}  // namespace catena::testing::detail
