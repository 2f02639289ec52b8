// A handle of CUDA stands for a whole block of cudaMalloc: an address in it goes along as an offset.
#include "backend.hpp"

#include <cstring>
#include <map>
#include <mutex>

namespace catena_cuda {
namespace {

static_assert(sizeof(catena_ipc_handle) == sizeof(cudaIpcMemHandle_t));
static_assert(sizeof(catena_ipc_handle) == sizeof(cudaIpcEventHandle_t));

struct Blocks {
    std::mutex mutex;
    std::map<uintptr_t, uint64_t> bytes;  // by start
};

// Made on the first call, never destroyed: no static constructor.
Blocks& blocks() {
    static auto* const all = new Blocks;
    return *all;
}

uintptr_t address(const void* data) { return reinterpret_cast<uintptr_t>(data); }

// The start of the block that data is in, or 0.
uintptr_t start_of(const void* data) {
    const std::lock_guard lock(blocks().mutex);
    auto block = blocks().bytes.upper_bound(address(data));
    if (block == blocks().bytes.begin()) return 0;
    --block;
    return address(data) < block->first + block->second ? block->first : 0;
}

catena_status memory_export(catena_ctx* ctx, void* dev, const void* data, catena_ipc_handle* handle,
                            uint64_t* offset) {
    return guarded(ctx, "ipc export", [&]() -> catena_status {
        Scope scope(ctx, "ipc export", dev);
        const uintptr_t start = start_of(data);
        if (start == 0)
            return fail(ctx, CATENA_E_INVALID,
                        "[cuda ipc export] address: expected memory of device %d that this process "
                        "allocated, got another",
                        device_of(dev).ordinal);
        cudaIpcMemHandle_t packed;
        scope.check(cudaIpcGetMemHandle(&packed, reinterpret_cast<void*>(start)),
                    "cudaIpcGetMemHandle", "the driver, or this container, may share none");
        std::memcpy(handle->bytes, &packed, sizeof packed);
        *offset = address(data) - start;
        return scope.status();
    });
}

catena_status memory_import(catena_ctx* ctx, void* dev, const catena_ipc_handle* handle,
                            void** data) {
    *data = nullptr;
    Scope scope(ctx, "ipc import", dev);
    cudaIpcMemHandle_t packed;
    std::memcpy(&packed, handle->bytes, sizeof packed);
    // CUDA counts imports of the same handle itself, and gives the same address.
    if (!scope.ok()) return scope.status();
    scope.check(cudaIpcOpenMemHandle(data, packed, cudaIpcMemLazyEnablePeerAccess),
                "cudaIpcOpenMemHandle",
                "the process that exported it cannot import it; nor can others where the "
                "driver, or this container, lets none be shared");
    return scope.status();
}

void memory_close(void* dev, void* data) {
    if (data == nullptr) return;
    Scope scope(nullptr, "ipc close", dev);
    scope.check(cudaIpcCloseMemHandle(data), "cudaIpcCloseMemHandle");
}

catena_status shared_event_create(catena_ctx* ctx, void* dev, catena_event** event) {
    return make_event(ctx, dev, cudaEventDisableTiming | cudaEventInterprocess, event);
}

catena_status event_export(catena_ctx* ctx, void* dev, catena_event* event,
                           catena_ipc_handle* handle) {
    Scope scope(ctx, "ipc event_export", dev);
    cudaIpcEventHandle_t packed;
    scope.check(cudaIpcGetEventHandle(&packed, cuda(event)), "cudaIpcGetEventHandle",
                "expected an event of event_create() of catena.ipc");
    std::memcpy(handle->bytes, &packed, sizeof packed);
    return scope.status();
}

catena_status event_import(catena_ctx* ctx, void* dev, const catena_ipc_handle* handle,
                           catena_event** event) {
    Scope scope(ctx, "ipc event_import", dev);
    cudaIpcEventHandle_t packed;
    std::memcpy(&packed, handle->bytes, sizeof packed);
    cudaEvent_t opened = nullptr;
    scope.check(cudaIpcOpenEventHandle(&opened, packed), "cudaIpcOpenEventHandle");
    *event = reinterpret_cast<catena_event*>(opened);
    return scope.status();
}

}  // namespace

void note_block(void* data, uint64_t bytes) {
    const std::lock_guard lock(blocks().mutex);
    blocks().bytes[address(data)] = bytes;
}

void forget_block(void* data) {
    const std::lock_guard lock(blocks().mutex);
    blocks().bytes.erase(address(data));
}

const catena_ipc ipc_table = {
    .struct_size = sizeof(catena_ipc),
    .reserved = 0,
    .memory_export = memory_export,
    .memory_import = memory_import,
    .memory_close = memory_close,
    .event_create = shared_event_create,
    .event_export = event_export,
    .event_import = event_import,
};

}  // namespace catena_cuda
