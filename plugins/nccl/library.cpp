// Opens NCCL, and wraps communicators, streams and events.
#include "library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <thread>

namespace catena_nccl {
namespace {

constexpr int oldest = 21805;  // ncclCommInitRankConfig with the size of its configuration

std::string opened(Library& library) {
    constexpr const char* soname = "libnccl.so.2";
    const char* const path = std::getenv("CATENA_NCCL");  // NOLINT(concurrency-mt-unsafe)
    const bool named = path != nullptr && *path != 0;
    void* dl = dlopen(named ? path : soname, RTLD_NOW | RTLD_LOCAL);
    std::string got = dl == nullptr ? dlerror() : "";
    if (dl == nullptr && !named)
        dl = dlopen("/usr/local/cuda/lib64/libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (dl != nullptr) {
        const auto find = [&]<class F>(const char* name, F*& function) {
            function = reinterpret_cast<F*>(dlsym(dl, name));
            if (function == nullptr && got.find("without") == std::string::npos)
                got = std::string("a library without ") + name;
            return function != nullptr;
        };
        bool all = true;
        for (const bool found :
             {find("ncclGetVersion", library.version),
              find("ncclGetErrorString", library.error_string),
              find("ncclGetLastError", library.last_error),
              find("ncclGetUniqueId", library.unique_id),
              find("ncclCommInitRankConfig", library.init),
              find("ncclCommGetAsyncError", library.async_error),
              find("ncclCommFinalize", library.finalize), find("ncclCommDestroy", library.destroy),
              find("ncclCommAbort", library.comm_abort),
              find("ncclGroupStart", library.group_start), find("ncclGroupEnd", library.group_end),
              find("ncclAllReduce", library.all_reduce), find("ncclReduce", library.reduce),
              find("ncclBroadcast", library.broadcast), find("ncclAllGather", library.all_gather),
              find("ncclReduceScatter", library.reduce_scatter), find("ncclSend", library.send),
              find("ncclRecv", library.recv)})
            all = all && found;
        int version = 0;
        if (all && library.version(&version) == ncclSuccess && version >= oldest) return {};
        if (all) got = "version " + std::to_string(version) + ", as NCCL_VERSION_CODE";
    }
    return std::string("[nccl] library: expected ") + soname +
           " of 2.18.5 or newer (a path in CATENA_NCCL goes first), got: " + got;
}

}  // namespace

const Library& nccl() {
    static Library library;
    static const std::string error = opened(library);
    if (!error.empty()) throw Error(CATENA_E_UNSUPPORTED, error);
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
