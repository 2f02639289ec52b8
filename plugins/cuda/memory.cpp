// Device and pinned memory, copies, and memory shared with other processes. Blocks come from cudaMalloc;
// the host caches freed blocks. A CUDA IPC handle stands for a whole block, so addresses carry an offset.
#include "backend.hpp"

#include <bit>
#include <cinttypes>
#include <cstdio>
#include <map>
#include <mutex>

namespace catena_cuda {
namespace {

bool is_recording(Scope& scope, cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return scope.check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing") &&
           status != cudaStreamCaptureStatusNone;
}

// Whether CUDA manages the memory (pinned, managed): a copy reads it when the stream reaches the copy.
bool is_known(Scope& scope, const void* data) {
    cudaPointerAttributes attributes = {};
    return scope.check(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes") &&
           attributes.type != cudaMemoryTypeUnregistered;
}

catena_status host_alloc(catena_ctx* ctx, void* dev, uint64_t bytes, void** data) {
    *data = nullptr;
    if (bytes == 0) return CATENA_OK;
    Scope scope(ctx, "host_alloc", dev);
    const BesideRecording beside(scope);
    char detail[64];
    std::snprintf(detail, sizeof detail, "expected %" PRIu64 " bytes of pinned memory", bytes);
    if (!scope.ok()) return scope.status();
    return scope.end(cudaHostAlloc(data, bytes, cudaHostAllocPortable), "cudaHostAlloc", detail);
}

void host_free(void* dev, void* data, uint64_t) {
    if (data != nullptr) Scope(nullptr, "host_free", dev).check(cudaFreeHost(data), "cudaFreeHost");
}

cudaMemcpyKind kind_of(int32_t direction) {
    switch (direction) {
        case CATENA_COPY_HOST_TO_DEVICE: return cudaMemcpyHostToDevice;
        case CATENA_COPY_DEVICE_TO_HOST: return cudaMemcpyDeviceToHost;
        default: return cudaMemcpyDeviceToDevice;
    }
}

catena_status copy_async(catena_ctx* ctx, void* dev, catena_stream* stream, void* dst,
                         const void* src, uint64_t bytes, int32_t direction) {
    if (bytes == 0) return CATENA_OK;
    return Scope(ctx, "copy_async", dev)
        .end(cudaMemcpyAsync(dst, src, bytes, kind_of(direction), cuda(stream)), "cudaMemcpyAsync");
}

catena_status fill(catena_ctx* ctx, void* dev, catena_stream* stream, void* dst, const void* value,
                   uint32_t value_bytes, uint64_t n) {
    if (value_bytes != 1 && value_bytes != 2 && value_bytes != 4 && value_bytes != 8 &&
        value_bytes != 16)
        return fail(ctx, CATENA_E_INVALID,
                    "[cuda fill] element: expected 1, 2, 4, 8 or 16 bytes, got %u", value_bytes);
    if (n == 0) return CATENA_OK;
    Scope scope(ctx, "fill", dev);
    const auto* bytes = static_cast<const unsigned char*>(value);
    bool same = true;
    for (uint32_t i = 1; i < value_bytes; ++i) same = same && bytes[i] == bytes[0];
    if (same)  // such as zeros
        return scope.end(cudaMemsetAsync(dst, bytes[0], n * value_bytes, cuda(stream)),
                         "cudaMemsetAsync");
    return scope.end(
        launch_fill(cuda(stream), device_of(dev).processors, dst, value, value_bytes, n),
        "cudaLaunchKernelEx");
}

// Enables direct access once per pair of devices. Without it, copies go through the host, slower.
void enable_peer(Device& device, int peer) {
    const auto bit = uint64_t{1} << (peer % 64);
    if ((device.peers.load(std::memory_order_relaxed) & bit) != 0) return;
    int can = 0;
    Scope scope(nullptr, "copy_peer", device.ordinal);
    const BesideRecording beside(scope);
    if (scope.check(cudaDeviceCanAccessPeer(&can, device.ordinal, peer),
                    "cudaDeviceCanAccessPeer") &&
        can != 0)  // another library may have enabled it already
        scope.check(cudaDeviceEnablePeerAccess(peer, 0), "cudaDeviceEnablePeerAccess");
    device.peers.fetch_or(bit, std::memory_order_relaxed);
}

catena_status copy_peer(catena_ctx* ctx, void* dev, catena_stream* stream, void* dst, void* src_dev,
                        const void* src, uint64_t bytes) {
    if (bytes == 0) return CATENA_OK;
    const int from = device_of(src_dev).ordinal;
    enable_peer(device_of(dev), from);
    return Scope(ctx, "copy_peer", dev)
        .end(cudaMemcpyPeerAsync(dst, device_of(dev).ordinal, src, from, bytes, cuda(stream)),
             "cudaMemcpyPeerAsync");
}

// The blocks that alloc() returned, to find the start of the block that contains an address.
struct Blocks {
    std::mutex mutex;
    std::map<uintptr_t, uint64_t> bytes;  // by start address
};

// Created by the first call and never destroyed, so there is no static constructor.
Blocks& blocks() {
    static auto* const all = new Blocks;
    return *all;
}

uintptr_t address(const void* data) { return reinterpret_cast<uintptr_t>(data); }

// Returns the start of the block that contains data, or 0.
uintptr_t start_of(const void* data) {
    const std::lock_guard lock(blocks().mutex);
    auto block = blocks().bytes.upper_bound(address(data));
    if (block == blocks().bytes.begin()) return 0;
    --block;
    return address(data) < block->first + block->second ? block->first : 0;
}

catena_status memory_export(catena_ctx* ctx, void* dev, const void* data, catena_ipc_handle* handle,
                            uint64_t* offset) {
    return guarded(ctx, "ipc export", [&] {
        Scope scope(ctx, "ipc export", dev);
        const uintptr_t start = start_of(data);
        if (start == 0)
            check_status(
                fail(ctx, CATENA_E_INVALID,
                     "[cuda ipc export] address: expected memory of device %d that this process "
                     "allocated, got another",
                     device_of(dev).ordinal));
        cudaIpcMemHandle_t packed;
        scope.check(cudaIpcGetMemHandle(&packed, reinterpret_cast<void*>(start)),
                    "cudaIpcGetMemHandle", "the driver, or this container, may share none");
        *handle = std::bit_cast<catena_ipc_handle>(packed);
        *offset = address(data) - start;
        check_status(scope.status());
    });
}

catena_status memory_import(catena_ctx* ctx, void* dev, const catena_ipc_handle* handle,
                            void** data) {
    *data = nullptr;
    Scope scope(ctx, "ipc import", dev);
    // CUDA itself counts imports of the same handle and returns the same address.
    if (!scope.ok()) return scope.status();
    return scope.end(cudaIpcOpenMemHandle(data, std::bit_cast<cudaIpcMemHandle_t>(*handle),
                                          cudaIpcMemLazyEnablePeerAccess),
                     "cudaIpcOpenMemHandle",
                     "the process that exported it cannot import it; nor can others where the "
                     "driver, or this container, lets none be shared");
}

void memory_close(void* dev, void* data) {
    if (data != nullptr)
        Scope(nullptr, "ipc close", dev)
            .check(cudaIpcCloseMemHandle(data), "cudaIpcCloseMemHandle");
}

catena_status event_export(catena_ctx* ctx, void* dev, catena_event* event,
                           catena_ipc_handle* handle) {
    Scope scope(ctx, "ipc event_export", dev);
    cudaIpcEventHandle_t packed;
    scope.check(cudaIpcGetEventHandle(&packed, cuda(event)), "cudaIpcGetEventHandle",
                "expected an event of event_create() of catena.ipc");
    *handle = std::bit_cast<catena_ipc_handle>(packed);
    return scope.status();
}

catena_status event_import(catena_ctx* ctx, void* dev, const catena_ipc_handle* handle,
                           catena_event** event) {
    Scope scope(ctx, "ipc event_import", dev);
    cudaEvent_t opened = nullptr;
    scope.check(cudaIpcOpenEventHandle(&opened, std::bit_cast<cudaIpcEventHandle_t>(*handle)),
                "cudaIpcOpenEventHandle");
    *event = reinterpret_cast<catena_event*>(opened);
    return scope.status();
}

}  // namespace

catena_status alloc(catena_ctx* ctx, void* dev, catena_stream*, uint64_t bytes, void** data) {
    *data = nullptr;
    if (bytes == 0) return CATENA_OK;
    Scope scope(ctx, "alloc", dev);
    const BesideRecording beside(scope);
    if (!scope.ok()) return scope.status();
    char detail[128];
    std::snprintf(detail, sizeof detail, "expected %" PRIu64 " bytes", bytes);
    const cudaError_t error = cudaMalloc(data, bytes);
    size_t left = 0;
    size_t all = 0;
    if (error == cudaErrorMemoryAllocation && cudaMemGetInfo(&left, &all) == cudaSuccess)
        std::snprintf(detail, sizeof detail, "expected %" PRIu64 " bytes, got %zu left of %zu",
                      bytes, left, all);
    scope.check(error, "cudaMalloc", detail);
    catena_status status = scope.status();
    if (error == cudaSuccess)
        status = guarded(ctx, "alloc", [&] {
            const std::lock_guard lock(blocks().mutex);
            blocks().bytes[address(*data)] = bytes;
        });
    if (status == CATENA_OK) return status;
    if (error == cudaSuccess) static_cast<void>(cudaFree(*data));
    *data = nullptr;
    return status;
}

// Waits for the stream before it frees the block, because the stream may still use it.
void release(void* dev, catena_stream* stream, void* data, uint64_t) {
    if (data == nullptr) return;
    Scope scope(nullptr, "free", dev);
    if (stream != nullptr)
        scope.check(cudaStreamSynchronize(cuda(stream)), "cudaStreamSynchronize");
    {
        const std::lock_guard lock(blocks().mutex);
        blocks().bytes.erase(address(data));
    }
    scope.check(cudaFree(data), "cudaFree");
}

catena_status copy(catena_ctx* ctx, void* dev, catena_stream* stream, void* dst, const void* src,
                   uint64_t bytes, int32_t direction) {
    if (bytes == 0 || dst == src) return CATENA_OK;
    Scope scope(ctx, "copy", dev);
    const bool from_host = direction == CATENA_COPY_HOST_TO_DEVICE;
    if (from_host && is_recording(scope, cuda(stream)))
        return fail(
            ctx, CATENA_E_DEVICE,
            "[cuda copy] a graph is being recorded on device %d: memory of the host that is "
            "read now cannot be part of it; expected copy_async() of pinned memory",
            device_of(dev).ordinal);
    // cudaMemcpyAsync() reads pageable memory before it returns, unless the device accesses it directly.
    if (!scope.check(cudaMemcpyAsync(dst, src, bytes, kind_of(direction), cuda(stream)),
                     "cudaMemcpyAsync"))
        return scope.status();
    if (from_host && (device_of(dev).reads_host || is_known(scope, src)))
        scope.check(cudaStreamSynchronize(cuda(stream)), "cudaStreamSynchronize");
    return scope.status();
}

catena_status memory(catena_ctx* ctx, void* dev, uint64_t* free_bytes, uint64_t* total_bytes) {
    Scope scope(ctx, "memory", dev);
    size_t left = 0;
    size_t all = 0;
    scope.check(cudaMemGetInfo(&left, &all), "cudaMemGetInfo");
    *free_bytes = left;
    *total_bytes = all;
    return scope.status();
}

const catena_memory memory_table = {
    .struct_size = sizeof(catena_memory),
    .reserved = 0,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .copy_async = copy_async,
    .fill = fill,
    .copy_peer = copy_peer,
    .convert = convert,
};

const catena_ipc ipc_table = {
    .struct_size = sizeof(catena_ipc),
    .reserved = 0,
    .memory_export = memory_export,
    .memory_import = memory_import,
    .memory_close = memory_close,
    .event_create =
        [](catena_ctx* ctx, void* dev, catena_event** event) {
            return make_event(ctx, dev, cudaEventDisableTiming | cudaEventInterprocess, event);
        },
    .event_export = event_export,
    .event_import = event_import,
};

}  // namespace catena_cuda
