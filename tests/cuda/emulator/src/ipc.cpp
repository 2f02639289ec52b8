// Memory and events shared between processes: memfds, which the other process opens through /proc.
#include "ipc.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <thread>

#include "api.hpp"
#include "config.hpp"
#include "device.hpp"
#include "stream.hpp"

namespace catena_emulator {

struct Shared {
    std::atomic<std::uint64_t> recorded;
    std::atomic<std::uint64_t> completed;
};

namespace {

struct Handle {
    char magic[8];  // "emulated"
    std::int64_t process;
    std::int64_t file;
    std::uint64_t offset;
    std::uint64_t bytes;
    std::int64_t device;
    std::uint64_t kind;  // 0: memory, 1: event
};
static_assert(sizeof(Handle) <= sizeof(cudaIpcMemHandle_t));
static_assert(sizeof(Handle) <= sizeof(cudaIpcEventHandle_t));

std::map<const Shared*, int>& files() {
    static auto* const map = new std::map<const Shared*, int>;
    return *map;
}

// A mapping of imported memory, the handle it was opened with, and how often it was opened.
struct Import {
    Handle handle;
    void* map;
    std::size_t map_bytes;
    int times;
};
std::map<std::uintptr_t, Import>& imports() {
    static auto* const map = new std::map<std::uintptr_t, Import>;
    return *map;
}

int open_file(const Handle& handle) {
    const std::string path =
        "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
    return open(path.c_str(), O_RDWR | O_CLOEXEC);
}

bool is_valid(const Handle& handle, std::uint64_t kind) {
    return std::memcmp(handle.magic, "emulated", 8) == 0 && handle.kind == kind;
}

template <class T>
Handle unpack(const T& packed) {
    Handle handle;
    std::memcpy(&handle, packed.reserved, sizeof handle);
    return handle;
}

Handle make_handle(int file, std::uint64_t kind) {
    Handle handle = {};
    std::memcpy(handle.magic, "emulated", 8);
    handle.process = getpid();
    handle.file = file;
    handle.kind = kind;
    return handle;
}

}  // namespace

Shared* make_shared_event() {
    const int file = memfd_create("catena-emulated-event", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) throw std::bad_alloc();
    void* map = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) throw std::bad_alloc();
    auto* shared = new (map) Shared{};
    const std::lock_guard lock(api());
    files()[shared] = file;
    return shared;
}

std::uint64_t shared_record(Shared& event) { return ++event.recorded; }
std::uint64_t shared_recorded(const Shared& event) { return event.recorded; }
void shared_complete(Shared& event, std::uint64_t generation) {
    std::uint64_t now = event.completed;
    while (now < generation && !event.completed.compare_exchange_weak(now, generation)) continue;
}
bool shared_done(const Shared& event, std::uint64_t generation) {
    return event.completed >= generation;
}
void shared_wait(const Shared& event, std::uint64_t generation) {
    while (!shared_done(event, generation))
        std::this_thread::sleep_for(std::chrono::microseconds(50));
}

}  // namespace catena_emulator

using namespace catena_emulator;

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* packed, void* data) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    if (!config().shares) return note(cudaErrorNotSupported);
    const std::lock_guard lock(api());
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    for (const auto& device : devices()) {
        const auto* block = device->heap.holds(at) ? device->heap.find(at) : nullptr;
        if (block == nullptr) continue;
        Handle handle = make_handle(device->heap.file(), 0);
        handle.offset = device->heap.offset(block->first);
        handle.bytes = block->second;
        handle.device = device->ordinal;
        *packed = {};
        std::memcpy(packed->reserved, &handle, sizeof handle);
        return cudaSuccess;
    }
    return note(cudaErrorInvalidValue);
}

cudaError_t cudaIpcOpenMemHandle(void** data, cudaIpcMemHandle_t packed, unsigned flags) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const Handle handle = unpack(packed);
    if (!is_valid(handle, 0) || flags != cudaIpcMemLazyEnablePeerAccess)
        return note(cudaErrorInvalidValue);
    if (handle.process == getpid()) return note(cudaErrorInvalidResourceHandle);
    const std::lock_guard lock(api());
    for (auto& [at, import] : imports())
        if (std::memcmp(&import.handle, &handle, sizeof handle) == 0) {
            ++import.times;
            *data = reinterpret_cast<void*>(at);
            return cudaSuccess;
        }
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t before = handle.offset % page;
    const int file = open_file(handle);
    if (file < 0) return note(cudaErrorInvalidResourceHandle);
    void* map = mmap(nullptr, before + handle.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                     static_cast<off_t>(handle.offset - before));
    close(file);
    if (map == MAP_FAILED) return note(cudaErrorMemoryAllocation);
    *data = static_cast<char*>(map) + before;
    const auto at = reinterpret_cast<std::uintptr_t>(*data);
    imports()[at] = {handle, map, before + handle.bytes, 1};
    imported()[at] = {handle.bytes, current_ordinal(), true};
    return cudaSuccess;
}

cudaError_t cudaIpcCloseMemHandle(void* data) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const std::lock_guard lock(api());
    const auto import = imports().find(reinterpret_cast<std::uintptr_t>(data));
    if (import == imports().end()) return note(cudaErrorInvalidValue);
    if (--import->second.times > 0) return cudaSuccess;
    munmap(import->second.map, import->second.map_bytes);
    imported().erase(import->first);
    imports().erase(import);
    return cudaSuccess;
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* packed, cudaEvent_t event) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    if (!config().shares) return note(cudaErrorNotSupported);
    const std::lock_guard lock(api());
    if (event == nullptr || event->state->shared == nullptr)
        return note(cudaErrorInvalidResourceHandle);
    const Handle handle = make_handle(files()[event->state->shared], 1);
    *packed = {};
    std::memcpy(packed->reserved, &handle, sizeof handle);
    return cudaSuccess;
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t packed) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const Handle handle = unpack(packed);
    if (!is_valid(handle, 1)) return note(cudaErrorInvalidValue);
    if (handle.process == getpid()) return note(cudaErrorInvalidResourceHandle);
    const int file = open_file(handle);
    if (file < 0) return note(cudaErrorInvalidResourceHandle);
    void* map = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (map == MAP_FAILED) return note(cudaErrorMemoryAllocation);
    auto state = std::make_shared<EventState>();
    state->shared = static_cast<Shared*>(map);
    *event = new CUevent_st{std::move(state), cudaEventInterprocess | cudaEventDisableTiming,
                            current_ordinal(), nullptr};
    return cudaSuccess;
}
