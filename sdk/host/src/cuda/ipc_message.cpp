// Messages between processes: checked as they are read.
#include "ipc_message.hpp"

#include <catena/core/backend.hpp>
#include <catena/core/error.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

namespace catena::cuda {

static_assert(std::is_trivially_copyable_v<IPCMessage> && sizeof(IPCMessage) == 304);

namespace {

// FNV-1a: what was damaged on the way is not taken for an address.
std::uint64_t sum_of(const IPCMessage& message) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&message);
    std::uint64_t sum = 0xcbf29ce484222325;
    for (std::size_t i = 0; i < offsetof(IPCMessage, sum); ++i)
        sum = (sum ^ bytes[i]) * 0x100000001b3;
    return sum;
}

// A reason why these are no bytes of that kind, or none.
const char* problem(const IPCMessage& message, IPCMessage::Kind kind) {
    if (std::memcmp(message.magic, IPCMessage().magic, sizeof message.magic) != 0) return "others";
    if (message.kind != kind) return message.kind == IPCMessage::event ? "an event" : "an array";
    if (message.sum != sum_of(message)) return "damaged ones";
    if (!std::memchr(message.device, 0, sizeof message.device)) return "a device without an end";
    if (kind == IPCMessage::event) return nullptr;
    Dtype dtype{};
    if (!from_abi(message.dtype, dtype)) return "an unknown dtype";
    if (message.ndim < 0 || message.ndim > CATENA_MAX_NDIM) return "a shape that cannot be";
    std::int64_t left = std::numeric_limits<std::int64_t>::max() / 16;  // elements, of any dtype
    for (int i = 0; i < message.ndim; ++i) {
        if (message.shape[i] < 0 || message.shape[i] > left) return "a shape that cannot be";
        left /= std::max<std::int64_t>(message.shape[i], 1);
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
    throw InvalidError(fmt::format("[{}] bytes: expected the result of bytes() of {}, got {}", what,
                                   kind == event ? "an event" : "an array", wrong));
}

std::string IPCMessage::write() const {
    IPCMessage whole = *this;
    whole.sum = sum_of(whole);
    return {reinterpret_cast<const char*>(&whole), sizeof whole};
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
