// Opens NCCL, and wraps communicators, streams and events.
#include "library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <thread>

namespace catena_nccl {
namespace {

constexpr int oldest = 21805;  // ncclCommInitRankConfig with the size of its configuration

[[noreturn]] void refuse(const std::string& got) {
    throw Error(
        CATENA_E_UNSUPPORTED,
        "[nccl] library: expected libnccl.so.2 of 2.18.5 or newer (a path in CATENA_NCCL goes "
        "first), got: " +
            got);
}

void* opened() {
    const char* const path = std::getenv("CATENA_NCCL");  // NOLINT(concurrency-mt-unsafe)
    const bool named = path != nullptr && *path != 0;
    void* dl = dlopen(named ? path : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    const std::string error = dl == nullptr ? dlerror() : "";
    if (dl == nullptr && !named)
        dl = dlopen("/usr/local/cuda/lib64/libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (dl == nullptr) refuse(error);
    return dl;
}

}  // namespace

Symbol symbol(const char* name) {
    static void* const dl = opened();
    void* const address = dlsym(dl, name);
    if (address == nullptr) refuse(std::string("a library without ") + name);
    return {address};
}

const Library& nccl() {
    static const Library library;
    static const int version = [] {
        int number = 0;
        library.version(&number);
        return number;
    }();
    if (version < oldest) refuse("version " + std::to_string(version) + ", as NCCL_VERSION_CODE");
    return library;
}

void check(const char* call, cudaError_t error) {
    if (error == cudaSuccess) return;
    static_cast<void>(cudaGetLastError());  // it is reported here
    throw Error(error == cudaErrorMemoryAllocation ? CATENA_E_NOMEM : CATENA_E_DEVICE,
                std::string("[nccl] ") + call + ": expected success, got " +
                    cudaGetErrorName(error) + " (" + cudaGetErrorString(error) + ")");
}

void check(const char* call, ncclResult_t result, ncclComm_t comm) {
    if (result == ncclSuccess || result == ncclInProgress) return;
    static_cast<void>(cudaGetLastError());  // NCCL may leave one
    std::string text =
        std::string("[nccl] ") + call + ": expected success, got " + nccl().error_string(result);
    if (const char* more = nccl().last_error(comm); more != nullptr && *more != 0)
        text += std::string(" (") + more + ")";
    throw Error(CATENA_E_DEVICE, text);
}

Event::Event() {
    check("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
}
Event::~Event() { static_cast<void>(cudaEventDestroy(event_)); }
bool Event::done() const {
    const cudaError_t error = cudaEventQuery(event_);
    if (error != cudaErrorNotReady) check("cudaEventQuery", error);
    else static_cast<void>(cudaGetLastError());
    return error == cudaSuccess;
}

void pause(const Waiting& waiting) {
    waiting();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
}

Link::Link(int device, int rank, int size, const std::string& id, const Waiting& waiting)
    : device_(device) {
    ncclUniqueId unique = {};
    std::memcpy(&unique, id.data(), std::min(id.size(), sizeof unique));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    try {
        check("cudaStreamCreateWithFlags",
              cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        check("cudaMalloc", cudaMalloc(&byte_, 1));
        settle("ncclCommInitRankConfig", nccl().init(&comm_, size, unique, rank, &config), waiting);
    } catch (...) {
        free();
        throw;
    }
}

void Link::free() {
    const CurrentDevice current(device_);
    interrupt();
    if (stream_ != nullptr) {
        // copies may still wait there for their turn, and the caller frees their memory
        static_cast<void>(cudaStreamSynchronize(stream_));
        static_cast<void>(cudaStreamDestroy(stream_));
    }
    static_cast<void>(cudaFree(byte_));
}

// A communicator that does not block returns before its work is on the stream.
void Link::settle(const char* call, ncclResult_t result, const Waiting& waiting) {
    check(call, result, comm_);
    while (result == ncclInProgress) {
        pause(waiting);
        check("ncclCommGetAsyncError", nccl().async_error(comm_, &result), comm_);
        check(call, result, comm_);
    }
}

void Link::poll() const {
    ncclResult_t result = ncclSuccess;
    if (comm_ == nullptr) return;
    check("ncclCommGetAsyncError", nccl().async_error(comm_, &result), comm_);
    check("an operation", result, comm_);
}

void Link::interrupt() {
    if (comm_ != nullptr) static_cast<void>(nccl().comm_abort(comm_));
    comm_ = nullptr;
}

void Link::close(const Waiting& waiting) {
    if (comm_ == nullptr) return;
    settle("ncclCommFinalize", nccl().finalize(comm_), waiting);
    static_cast<void>(nccl().destroy(comm_));
    comm_ = nullptr;
}

std::string make_id() {
    ncclUniqueId id = {};
    check("ncclGetUniqueId", nccl().unique_id(&id));
    return {id.internal, sizeof id.internal};
}

}  // namespace catena_nccl
