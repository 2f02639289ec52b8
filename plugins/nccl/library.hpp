// NCCL's functions, found by name in a library that is opened on first use; CUDA and NCCL objects.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <functional>
#include <string>

#include <catena/plugin/communicator.hpp>
#include <catena/plugin/cuda/current.hpp>

namespace catena_nccl {

using catena::plugin::Clock, catena::plugin::Error;
using catena::plugin::cuda::CurrentDevice;

struct Symbol {
    void* address;
    template <class F>
    operator F*() const {
        return reinterpret_cast<F*>(address);
    }
};
Symbol symbol(const char* name);

struct Library {
    decltype(&ncclGetVersion) version = symbol("ncclGetVersion");
    decltype(&ncclGetErrorString) error_string = symbol("ncclGetErrorString");
    decltype(&ncclGetLastError) last_error = symbol("ncclGetLastError");
    decltype(&ncclGetUniqueId) unique_id = symbol("ncclGetUniqueId");
    decltype(&ncclCommInitRankConfig) init = symbol("ncclCommInitRankConfig");
    decltype(&ncclCommGetAsyncError) async_error = symbol("ncclCommGetAsyncError");
    decltype(&ncclCommFinalize) finalize = symbol("ncclCommFinalize");
    decltype(&ncclCommDestroy) destroy = symbol("ncclCommDestroy");
    decltype(&ncclCommAbort) comm_abort = symbol("ncclCommAbort");
    decltype(&ncclGroupStart) group_start = symbol("ncclGroupStart");
    decltype(&ncclGroupEnd) group_end = symbol("ncclGroupEnd");
    decltype(&ncclAllReduce) all_reduce = symbol("ncclAllReduce");
    decltype(&ncclReduce) reduce = symbol("ncclReduce");
    decltype(&ncclBroadcast) broadcast = symbol("ncclBroadcast");
    decltype(&ncclAllGather) all_gather = symbol("ncclAllGather");
    decltype(&ncclReduceScatter) reduce_scatter = symbol("ncclReduceScatter");
    decltype(&ncclSend) send = symbol("ncclSend");
    decltype(&ncclRecv) recv = symbol("ncclRecv");
};
// [any] Opens NCCL once. Throws Error if it is missing, too old, or lacks a function.
const Library& nccl();

// Throw Error(CATENA_E_DEVICE, "[nccl] CALL: expected success, got ...").
void check(const char* call, cudaError_t error);
void check(const char* call, ncclResult_t result, ncclComm_t comm = nullptr);

// A device of this process that is current for the thread within a scope.
class OnDevice {
public:
    explicit OnDevice(int device) : current_(device) { check(current_.call(), current_.error()); }

private:
    const CurrentDevice current_;
};

// An event without timing, of the current device.
class Event {
public:
    Event();
    ~Event();
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    cudaEvent_t get() const { return event_; }
    bool done() const;

private:
    cudaEvent_t event_ = nullptr;
};

// Called while NCCL works on the host; throws if it is to end.
using Waiting = std::function<void()>;
void pause(const Waiting& waiting);

// A communicator of NCCL and its stream. Its calls never block on the host. Not thread-safe.
class Link {
public:
    // Joins the ranks with the same id. The device must be current.
    Link(int device, int rank, int size, const std::string& id, const Waiting& waiting);
    ~Link() { free(); }
    Link(const Link&) = delete;
    Link& operator=(const Link&) = delete;

    cudaStream_t stream() const { return stream_; }
    void* byte() const { return byte_; }  // one, on the device
    // Calls body(comm, stream) in a group of NCCL, and waits until its work is on the stream.
    template <class Body>
    void launch(const Waiting& waiting, const Body& body) {
        check("ncclGroupStart", nccl().group_start());
        try {
            body(comm_, stream_);
        } catch (...) {
            nccl().group_end();
            throw;
        }
        settle("ncclGroupEnd", nccl().group_end(), waiting);
    }
    // The same, and waits until the work is done.
    template <class Body>
    void complete(const Waiting& waiting, const Body& body) {
        launch(waiting, body);
        const Event end;
        check("cudaEventRecord", cudaEventRecord(end.get(), stream_));
        while (!end.done()) pause(waiting);
    }
    // Throws Error if NCCL reports a failure of the work.
    void poll() const;
    // Ends the work on the device, without the other ranks.
    void interrupt();
    // Ends the communicator in agreement with the other ranks: all its work is done.
    void close(const Waiting& waiting);

private:
    void free();
    void settle(const char* call, ncclResult_t result, const Waiting& waiting);

    const int device_;
    ncclComm_t comm_ = nullptr;
    cudaStream_t stream_ = nullptr;
    void* byte_ = nullptr;
};

// Returns a new id of a communicator.
std::string make_id();

}  // namespace catena_nccl
