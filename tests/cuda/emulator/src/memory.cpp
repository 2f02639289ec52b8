// Memory of devices and pinned memory of the host, copies and fills.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "api.hpp"
#include "config.hpp"
#include "counts.hpp"
#include "device.hpp"
#include "stream.hpp"

using namespace catena_emulator;

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    *data = nullptr;
    if (bytes == 0) return cudaSuccess;
    const std::lock_guard lock(api());
    if (capture_forbids()) return note(cudaErrorStreamCaptureUnsupported);
    *data = current_device().heap.allocate(bytes);
    if (*data == nullptr) return note(cudaErrorMemoryAllocation);
    catena_emulator_live(1);
    return cudaSuccess;
}

// Does not wait for work that still uses the block; the caller has to.
cudaError_t cudaFree(void* data) {
    if (const cudaError_t error = enter_to_free(); error != cudaSuccess) return error;
    if (data == nullptr) return cudaSuccess;
    const std::lock_guard lock(api());
    if (capture_forbids()) return note(cudaErrorStreamCaptureUnsupported);
    for (const auto& device : devices()) {
        const auto at = reinterpret_cast<std::uintptr_t>(data);
        if (!device->heap.holds(at)) continue;
        const auto* block = device->heap.find(at);
        if (block == nullptr || block->first != at) return note(cudaErrorInvalidValue);
        device->heap.release(data);
        catena_emulator_live(-1);
        return cudaSuccess;
    }
    return note(cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    *data = nullptr;
    if (bytes == 0) return cudaSuccess;
    const std::lock_guard lock(api());
    if (capture_forbids()) return note(cudaErrorStreamCaptureUnsupported);
    *data = pinned_allocate(bytes);
    if (*data == nullptr) return note(cudaErrorMemoryAllocation);
    catena_emulator_live(1);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void** data, std::size_t bytes) { return cudaHostAlloc(data, bytes, 0); }

cudaError_t cudaFreeHost(void* data) {
    if (const cudaError_t error = enter_to_free(); error != cudaSuccess) return error;
    if (data == nullptr) return cudaSuccess;
    const std::lock_guard lock(api());
    if (capture_forbids()) return note(cudaErrorStreamCaptureUnsupported);
    if (!pinned_release(data)) return note(cudaErrorInvalidValue);
    catena_emulator_live(-1);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const std::lock_guard lock(api());
    *total_bytes = config().memory;
    *free_bytes = config().memory - current_device().heap.used();
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const std::lock_guard lock(api());
    const Place place = place_of(data, 0);
    void* plain = const_cast<void*>(data);
    switch (place.kind) {
        case Place::Kind::device:
            *attributes = {cudaMemoryTypeDevice, place.device, plain, nullptr, {}};
            break;
        case Place::Kind::pinned:
            *attributes = {cudaMemoryTypeHost, current_ordinal(), plain, plain, {}};
            break;
        default: *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, plain, {}};
    }
    return cudaSuccess;
}

namespace {

using catena_machine::Byte;
using Kind = Place::Kind;

bool fits(cudaMemcpyKind kind, Kind dst, Kind src) {
    if (dst == Kind::invalid || src == Kind::invalid) return false;
    const bool to_device = dst == Kind::device;
    const bool from_device = src == Kind::device;
    switch (kind) {
        case cudaMemcpyHostToHost: return !to_device && !from_device;
        case cudaMemcpyHostToDevice: return to_device && !from_device;
        case cudaMemcpyDeviceToHost: return !to_device && from_device;
        case cudaMemcpyDeviceToDevice: return to_device && from_device;
        default: return true;
    }
}

bool is_freed(const Byte* states, std::size_t bytes) {
    return states != nullptr && std::find(states, states + bytes, Byte::free) != states + bytes;
}

// Returns work that writes memory, as writer() does, and is counted as `name`. States are copied with the
// memory from src; without it, or if that has no states, all that is written has the state "written".
template <class Writer>
Work writing(const char* name, Device& device, void* dst, const void* src, std::size_t bytes,
             Writer writer) {
    return [=, &device, writer = std::move(writer), to = states_of(dst), from = states_of(src)] {
        count(name);
        if (is_freed(to, bytes) || is_freed(from, bytes))
            return fault(device, cudaErrorIllegalAddress, "a copy of memory that was freed");
        std::string race = touch(dst, bytes, true);
        if (race.empty() && src != nullptr) race = touch(src, bytes, false);
        if (!race.empty())
            return fault(device, cudaErrorLaunchFailure,
                         "a copy or fill of " + std::to_string(bytes) + " bytes: " + race);
        const Access access;
        writer();
        if (to != nullptr && from != nullptr) std::memmove(to, from, bytes);
        else if (to != nullptr) std::fill_n(to, bytes, Byte::written);
    };
}
Work copying(Device& device, void* dst, const void* src, std::size_t bytes) {
    return writing("copy", device, dst, src, bytes, [=] { std::memmove(dst, src, bytes); });
}

// Pageable memory is written, or read unless config().pageable, before this returns.
cudaError_t copy(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t handle, bool always_waits) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return note(cudaErrorInvalidMemcpyDirection);
    if (bytes == 0) return cudaSuccess;
    std::shared_ptr<Stream> stream;
    Clock clock;
    {
        std::unique_lock lock(api());
        const Place to = place_of(dst, bytes);
        const Place from = place_of(src, bytes);
        if (!fits(kind, to.kind, from.kind)) return note(cudaErrorInvalidValue);
        stream = find_stream(handle);
        if (stream == nullptr) return note(cudaErrorInvalidResourceHandle);
        const bool pageable = to.kind == Kind::pageable || from.kind == Kind::pageable;
        if (stream->capture != nullptr && (pageable || always_waits)) {
            stream->capture->invalid = true;
            return note(cudaErrorStreamCaptureUnsupported);
        }
        const bool staged = from.kind == Kind::pageable && !config().pageable;
        if (staged && to.kind == Kind::device && !always_waits) {
            if (config().staging) {  // as CUDA's copies may
                lock.unlock();
                stream->drain();
                lock.lock();
            }
            const auto* bytes_of = static_cast<const unsigned char*>(src);
            std::vector<unsigned char> copied(bytes_of, bytes_of + bytes);
            submit(*stream, writing("copy", *stream->device, dst, nullptr, bytes,
                                    [dst, copied = std::move(copied)] {
                                        std::memcpy(dst, copied.data(), copied.size());
                                    }));
            return cudaSuccess;
        }
        submit(*stream, copying(*stream->device, dst, src, bytes));
        if (!always_waits && to.kind != Kind::pageable) return cudaSuccess;
        clock = stream->clock;
    }
    stream->drain();
    host_waited(clock);
    return enter();
}

cudaError_t set(void* dst, int value, std::size_t bytes, cudaStream_t handle) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    if (bytes == 0) return cudaSuccess;
    const std::lock_guard lock(api());
    const Place to = place_of(dst, bytes);
    if (to.kind != Kind::device && to.kind != Kind::pinned) return note(cudaErrorInvalidValue);
    const auto stream = find_stream(handle);
    if (stream == nullptr) return note(cudaErrorInvalidResourceHandle);
    submit(*stream, writing("fill", *stream->device, dst, nullptr, bytes,
                            [=] { std::memset(dst, value, bytes); }));
    return cudaSuccess;
}

}  // namespace

cudaError_t cudaMemcpy(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind) {
    return copy(dst, src, bytes, kind, nullptr, true);
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
    return copy(dst, src, bytes, kind, stream, false);
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device,
                                std::size_t bytes, cudaStream_t handle) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    if (dst_device < 0 || dst_device >= config().devices || src_device < 0 ||
        src_device >= config().devices)
        return note(cudaErrorInvalidDevice);
    if (bytes == 0) return cudaSuccess;
    const std::lock_guard lock(api());
    const Place to = place_of(dst, bytes);
    const Place from = place_of(src, bytes);
    if (to.kind != Kind::device || from.kind != Kind::device || to.device != dst_device ||
        from.device != src_device)
        return note(cudaErrorInvalidValue);
    const auto stream = find_stream(handle);
    if (stream == nullptr) return note(cudaErrorInvalidResourceHandle);
    submit(*stream, copying(*stream->device, dst, src, bytes));
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* dst, int value, std::size_t bytes, cudaStream_t stream) {
    return set(dst, value, bytes, stream);
}
