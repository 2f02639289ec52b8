// Arrays and events of other processes. What came from another process is remembered, so that a
// handle made of it stands for where it came from: imported memory cannot be exported.
#include "ipc_message.hpp"

#include <catena/core/backend.hpp>
#include <catena/core/error.hpp>
#include <catena/cuda/ipc.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <mutex>

namespace catena::cuda {
namespace {

const char* address_of(const Array& array) {
    const catena_tensor& tensor = array.body()->tensor;
    return static_cast<const char*>(tensor.dl.data) + tensor.dl.byte_offset;
}

struct Import {
    IPCMessage message;
    Device device;
    const char* data;
    std::int64_t nbytes;
};

// Of all that is here from elsewhere: few.
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
    // Whether the array lies in imported memory; then message says what it is where it came from.
    bool find(const Array& array, IPCMessage& message) {
        const char* data = address_of(array);
        const std::lock_guard lock(mutex_);
        for (const Import& import : all_) {
            const std::int64_t into = data - import.data;
            if (import.device != array.device() || into < 0 ||
                into + array.nbytes() > import.nbytes) {
                continue;
            }
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
    static auto* all = new Imports;  // arrays of static objects may outlive any destructor
    return *all;
}

[[noreturn]] void throw_own(const char* what, const char* of) {
    throw InvalidError(fmt::format(
        "[{}] process: expected another process than that of the {}, got the same", what, of));
}

}  // namespace

bool ipc_available(const DeviceLike& device) {
    if (!available()) return false;
    const Device gpu = get_gpu("ipc_available", device);
    if (!backend_extension(gpu, CATENA_IPC_DRAFT_1)) return false;
    try {
        IPCEvent tried(gpu);
        return true;
    } catch (const DeviceError&) {  // the driver, or the container, does not
        return false;
    }
}

IPCArrayHandle::IPCArrayHandle(const Array& array) : array_(array) {
    const Device device = get_gpu("IPCArrayHandle", array);
    const catena_ipc& ipc = ipc_table("IPCArrayHandle", device);
    array.synchronize();
    IPCMessage message;
    message.kind = IPCMessage::array;
    message.set_device(device);
    message.process = this_process();
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
    (void)IPCMessage::read("IPCArrayHandle", bytes, IPCMessage::array);
    return IPCArrayHandle(std::string(bytes), Array());
}

Array IPCArrayHandle::get(const DeviceLike& like) const {
    if (array_) return array_;
    const IPCMessage message = IPCMessage::read("IPCArrayHandle", bytes_, IPCMessage::array);
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
    char* data = static_cast<char*>(start) + message.offset;
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

Shape IPCArrayHandle::shape() const {
    return IPCMessage::read("IPCArrayHandle", bytes_, IPCMessage::array).extents();
}
Dtype IPCArrayHandle::dtype() const {
    return IPCMessage::read("IPCArrayHandle", bytes_, IPCMessage::array).element();
}
std::string IPCArrayHandle::device_name() const {
    return IPCMessage::read("IPCArrayHandle", bytes_, IPCMessage::array).device;
}

IPCEvent::IPCEvent(const DeviceLike& like) {
    const Device device = get_gpu("IPCEvent", like);
    const catena_ipc& ipc = ipc_table("IPCEvent", device);
    catena_event* native = nullptr;
    call_backend(device, "IPCEvent",
                 [&](catena_ctx* ctx, void* dev) { return ipc.event_create(ctx, dev, &native); });
    static_cast<Event&>(*this) = Event(device, native);
    IPCMessage message;
    message.kind = IPCMessage::event;
    message.set_device(device);
    message.process = this_process();
    call_backend(device, "IPCEvent", [&](catena_ctx* ctx, void* dev) {
        return ipc.event_export(ctx, dev, native, &message.handle);
    });
    bytes_ = message.write();
}

IPCEvent IPCEvent::from_bytes(std::string_view bytes, const DeviceLike& like) {
    const IPCMessage message = IPCMessage::read("IPCEvent", bytes, IPCMessage::event);
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
