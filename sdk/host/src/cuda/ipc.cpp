// Shares arrays and events between processes. Imported memory cannot be exported again, so a handle
// to an imported array refers to the memory of the process that exported it.
#include "../support.hpp"

#include <catena/cuda/ipc.hpp>

#include <catena/abi/ext/draft/ipc.h>

#include <unistd.h>

#include <cstring>
#include <limits>
#include <list>
#include <mutex>
#include <random>

namespace catena::cuda {
namespace {

// The bytes of a handle, for programs of the same version on one machine. Unused bytes are 0.
struct IPCMessage {
    enum Kind : std::uint32_t { array = 1, event = 2 };

    char magic[8] = {'c', 'a', 't', 'e', 'n', 'a', 'I', '1'};
    std::uint32_t kind = 0;
    std::int32_t ndim = 0;
    catena_dtype dtype = {};
    std::uint32_t reserved = 0;
    std::uint64_t process = 0;  // the owner of the memory or event
    std::uint64_t offset = 0;
    std::int64_t shape[CATENA_MAX_NDIM] = {};
    catena_ipc_handle handle = {};
    char device[64] = {};   // name of the device
    std::uint64_t sum = 0;  // checksum of all bytes before it

    IPCMessage() = default;
    // Of this process.
    IPCMessage(Kind its_kind, Device of);
    std::string write() const {
        IPCMessage whole = *this;
        whole.sum = whole.computed_sum();
        return {reinterpret_cast<const char*>(&whole), sizeof whole};
    }
    // FNV-1a. It detects damaged bytes, which must not be used as an address.
    std::uint64_t computed_sum() const {
        const auto* bytes = reinterpret_cast<const unsigned char*>(this);
        std::uint64_t hash = 0xcbf29ce484222325;
        for (std::size_t i = 0; i < offsetof(IPCMessage, sum); ++i)
            hash = (hash ^ bytes[i]) * 0x100000001b3;
        return hash;
    }
    Shape extents() const { return Shape(std::span(shape, static_cast<std::size_t>(ndim))); }
    Dtype element() const {
        Dtype result{};
        from_abi(dtype, result);
        return result;
    }
    // Returns the given GPU of this process; by default the one with the name in the message.
    Device here(std::string_view what, const DeviceLike& like) const {
        return get_gpu(what, like.is_nothing() ? DeviceLike(Device::get(device)) : like);
    }
};

static_assert(std::is_trivially_copyable_v<IPCMessage> && sizeof(IPCMessage) == 304);

// Returns what is wrong with a message of this kind, or null.
const char* problem(const IPCMessage& message, IPCMessage::Kind kind) {
    if (std::memcmp(message.magic, IPCMessage().magic, sizeof message.magic) != 0) return "others";
    if (message.kind != kind) return message.kind == IPCMessage::event ? "an event" : "an array";
    if (message.sum != message.computed_sum()) return "damaged ones";
    if (!std::memchr(message.device, 0, sizeof message.device)) return "a device without an end";
    if (kind == IPCMessage::event) return nullptr;
    Dtype dtype{};
    if (!from_abi(message.dtype, dtype)) return "an unknown dtype";
    if (message.ndim < 0 || message.ndim > CATENA_MAX_NDIM) return "a shape that cannot be";
    std::int64_t left = std::numeric_limits<std::int64_t>::max() / 16;  // elements of 16 bytes each
    for (int i = 0; i < message.ndim; ++i) {
        if (message.shape[i] < 0 || message.shape[i] > left) return "a shape that cannot be";
        left /= std::max<std::int64_t>(message.shape[i], 1);
    }
    return nullptr;
}

// Throws InvalidError, "[what] bytes: ...", unless they are a message of this kind.
IPCMessage read_message(std::string_view what, std::string_view bytes, IPCMessage::Kind kind) {
    IPCMessage message;
    const char* wrong = bytes.size() == sizeof message ? nullptr : "another number of them";
    if (!wrong) {
        std::memcpy(&message, bytes.data(), sizeof message);
        wrong = problem(message, kind);
    }
    if (!wrong) return message;
    fail<InvalidError>("[{}] bytes: expected the result of bytes() of {}, got {}", what,
                       kind == IPCMessage::event ? "an event" : "an array", wrong);
}

IPCMessage read_array(std::string_view bytes) {
    return read_message("IPCArrayHandle", bytes, IPCMessage::array);
}

// Returns a number that identifies this process among those running on this machine.
std::uint64_t this_process() {
    static const std::uint32_t program = std::random_device()();
    return std::uint64_t{static_cast<std::uint32_t>(getpid())} << 32 | program;
}

IPCMessage::IPCMessage(Kind its_kind, Device of) : kind(its_kind), process(this_process()) {
    const std::string& name = of.name();
    if (name.size() >= sizeof device)
        fail<InvalidError>("[ipc] device: expected a name below {} bytes, got {}", sizeof device,
                           name);
    std::memcpy(device, name.c_str(), name.size() + 1);
}

// Throws UnsupportedError if the device does not share memory between processes.
const catena_ipc& ipc_table(std::string_view what, Device device) {
    const void* table = backend_extension(device, CATENA_IPC_DRAFT_1);
    if (table) return *static_cast<const catena_ipc*>(table);
    fail<UnsupportedError>("[{}] device: expected one that shares memory between processes, got {}",
                           what, device.name());
}

struct Import {
    IPCMessage message;
    Device device;
    const std::byte* data;
    std::int64_t nbytes;
};

// All memory imported from other processes. The list is short.
class Imports {
public:
    using Place = std::list<Import>::iterator;

    Place add(Import import) {
        const std::lock_guard lock(mutex_);
        return all_.insert(all_.end(), import);
    }
    void remove(Place place) {
        const std::lock_guard lock(mutex_);
        all_.erase(place);
    }
    // Whether the array lies in imported memory. If so, message refers to the exporter's memory.
    bool find(const Array& array, IPCMessage& message) {
        const std::byte* data = address_of(array);
        const std::lock_guard lock(mutex_);
        for (const Import& import : all_) {
            const std::int64_t into = data - import.data;
            if (import.device != array.device() || into < 0 ||
                into + array.nbytes() > import.nbytes)
                continue;
            message.process = import.message.process;
            message.handle = import.message.handle;
            message.offset = import.message.offset + static_cast<std::uint64_t>(into);
            std::copy_n(import.message.device, sizeof message.device, message.device);
            return true;
        }
        return false;
    }

private:
    std::mutex mutex_;
    std::list<Import> all_;
};

Imports& imports() {
    static auto* all = new Imports;  // never destroyed, because static arrays may outlive it
    return *all;
}

[[noreturn]] void throw_own(const char* what, const char* of) {
    fail<InvalidError>("[{}] process: expected another process than that of the {}, got the same",
                       what, of);
}

}  // namespace

bool ipc_available(const DeviceLike& device) {
    if (!available()) return false;
    const Device gpu = get_gpu("ipc_available", device);
    if (!backend_extension(gpu, CATENA_IPC_DRAFT_1)) return false;
    try {
        IPCEvent tried(gpu);
        return true;
    } catch (const DeviceError&) {  // the driver or the container does not support it
        return false;
    }
}

IPCArrayHandle::IPCArrayHandle(const Array& array) : array_(array) {
    const Device device = get_gpu("IPCArrayHandle", array);
    const catena_ipc& ipc = ipc_table("IPCArrayHandle", device);
    array.synchronize();
    IPCMessage message(IPCMessage::array, device);
    const Shape shape = array.shape();
    message.ndim = shape.ndim();
    std::copy(shape.begin(), shape.end(), message.shape);
    message.dtype = to_abi(array.dtype());
    if (array.size() > 0 && !imports().find(array, message)) {
        call_backend(device, "IPCArrayHandle", [&](catena_ctx* ctx, void* dev) {
            return ipc.memory_export(ctx, dev, address_of(array), &message.handle, &message.offset);
        });
    }
    bytes_ = message.write();
}

IPCArrayHandle IPCArrayHandle::from_bytes(std::string_view bytes) {
    (void)read_array(bytes);
    return IPCArrayHandle(std::string(bytes), Array());
}

Array IPCArrayHandle::get(const DeviceLike& like) const {
    if (array_) return array_;
    const IPCMessage message = read_array(bytes_);
    const Device device = message.here("IPCArrayHandle", like);
    const Shape shape = message.extents();
    if (shape.size() == 0) return Array::empty(shape, message.element(), device);
    if (message.process == this_process()) throw_own("IPCArrayHandle", "array");
    const catena_ipc& ipc = ipc_table("IPCArrayHandle", device);
    void* start = nullptr;
    call_backend(device, "IPCArrayHandle", [&](catena_ctx* ctx, void* dev) {
        return ipc.memory_import(ctx, dev, &message.handle, &start);
    });
    void* dev = backend_device(device);
    auto* data = static_cast<std::byte*>(start) + message.offset;
    const std::int64_t nbytes =
        shape.size() * static_cast<std::int64_t>(item_size(message.element()));
    const Imports::Place place = imports().add({message, device, data, nbytes});
    const auto release = [&ipc, dev, start, place] {
        imports().remove(place);
        ipc.memory_close(dev, start);
    };
    try {
        return Array::wrap(device, data, shape, message.element(), release);
    } catch (...) {
        release();
        throw;
    }
}

Shape IPCArrayHandle::shape() const { return read_array(bytes_).extents(); }
Dtype IPCArrayHandle::dtype() const { return read_array(bytes_).element(); }
std::string IPCArrayHandle::device_name() const { return read_array(bytes_).device; }

IPCEvent::IPCEvent(const DeviceLike& like) {
    const Device device = get_gpu("IPCEvent", like);
    const catena_ipc& ipc = ipc_table("IPCEvent", device);
    catena_event* native = nullptr;
    call_backend(device, "IPCEvent",
                 [&](catena_ctx* ctx, void* dev) { return ipc.event_create(ctx, dev, &native); });
    static_cast<Event&>(*this) = Event(device, native);
    IPCMessage message(IPCMessage::event, device);
    call_backend(device, "IPCEvent", [&](catena_ctx* ctx, void* dev) {
        return ipc.event_export(ctx, dev, native, &message.handle);
    });
    bytes_ = message.write();
}

IPCEvent IPCEvent::from_bytes(std::string_view bytes, const DeviceLike& like) {
    const IPCMessage message = read_message("IPCEvent", bytes, IPCMessage::event);
    const Device device = message.here("IPCEvent", like);
    const catena_ipc& ipc = ipc_table("IPCEvent", device);
    if (message.process == this_process()) throw_own("IPCEvent", "event");
    catena_event* native = nullptr;
    call_backend(device, "IPCEvent", [&](catena_ctx* ctx, void* dev) {
        return ipc.event_import(ctx, dev, &message.handle, &native);
    });
    return IPCEvent(Event(device, native), std::string(bytes));
}

}  // namespace catena::cuda
