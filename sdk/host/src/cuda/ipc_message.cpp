// Messages between processes: checked as they are read.
#include "ipc_message.hpp"

#include <catena/core/backend.hpp>
#include <catena/core/error.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <type_traits>

namespace catena::cuda {

static_assert(std::is_trivially_copyable_v<IPCMessage> && sizeof(IPCMessage) == 296);

namespace {

// A reason why these are no bytes of that kind, or none.
const char* problem(const IPCMessage& message, IPCMessage::Kind kind) {
    if (std::memcmp(message.magic, IPCMessage().magic, sizeof message.magic) != 0) return "others";
    if (message.kind != kind) return message.kind == IPCMessage::event ? "an event" : "an array";
    if (!std::memchr(message.device, 0, sizeof message.device)) return "a device without an end";
    if (kind == IPCMessage::event) return nullptr;
    Dtype dtype{};
    if (!from_abi(message.dtype, dtype)) return "an unknown dtype";
    if (message.ndim < 0 || message.ndim > CATENA_MAX_NDIM) return "a shape that cannot be";
    for (int i = 0; i < message.ndim; ++i) {
        if (message.shape[i] < 0) return "a shape that cannot be";
    }
    return nullptr;
}

}  // namespace

IPCMessage IPCMessage::read(std::string_view what, std::string_view bytes, Kind kind) {
    IPCMessage message;
    const char* wrong = bytes.size() == sizeof message ? nullptr : "another number of them";
    if (!wrong) {
        std::memcpy(&message, bytes.data(), sizeof message);
        wrong = problem(message, kind);
    }
    if (!wrong) return message;
    throw InvalidError(fmt::format("[{}] bytes: expected those that bytes() of {} gave, got {}",
                                   what, kind == event ? "an event" : "an array", wrong));
}

std::string IPCMessage::write() const {
    return {reinterpret_cast<const char*>(this), sizeof *this};
}

void IPCMessage::set_device(Device value) {
    const std::string& name = value.name();
    if (name.size() >= sizeof device) {
        throw InvalidError(fmt::format("[ipc] device: expected a name below {} bytes, got {}",
                                       sizeof device, name));
    }
    std::memcpy(device, name.c_str(), name.size() + 1);
}

Shape IPCMessage::extents() const {
    return Shape(std::span(shape, static_cast<std::size_t>(ndim)));
}

Dtype IPCMessage::element() const {
    Dtype result{};
    from_abi(dtype, result);
    return result;
}

Device IPCMessage::here(std::string_view what, const DeviceLike& like) const {
    return get_gpu(what, like.is_nothing() ? DeviceLike(Device::get(device)) : like);
}

std::uint64_t this_process() {
    static const std::uint32_t program = std::random_device()();
    return std::uint64_t{static_cast<std::uint32_t>(getpid())} << 32 | program;
}

const catena_ipc& ipc_table(std::string_view what, Device device) {
    const void* table = backend_extension(device, CATENA_IPC_DRAFT_1);
    if (table) return *static_cast<const catena_ipc*>(table);
    throw UnsupportedError(
        fmt::format("[{}] device: expected one that shares memory between processes, got {}", what,
                    device.name()));
}

}  // namespace catena::cuda
