// Devices: what the backend knows of each, and the scope in which calls of CUDA are for one of them.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>

#include "catena/abi.h"
#include "catena/plugin/cuda/current.hpp"

namespace catena_cuda {

// What open() returns.
struct Device {
    int ordinal = 0;
    int capability = 0;  // 90 for 9.0
    int processors = 0;
    bool reads_host = false;              // pageable memory, by itself and when it gets there
    char about[512] = {};                 // one line for people: name, capability, memory
    std::atomic<std::uint64_t> peers{0};  // whose memory it may access, by ordinal
};

inline Device& device_of(void* dev) { return *static_cast<Device*>(dev); }
inline cudaStream_t cuda(catena_stream* stream) { return reinterpret_cast<cudaStream_t>(stream); }
inline cudaEvent_t cuda(catena_event* event) { return reinterpret_cast<cudaEvent_t>(event); }

// The lowest capability that the modules of this build have code for: 80 for 8.0.
int least_capability();

// As in catena_backend.
catena_status CATENA_CALL count(catena_ctx* ctx, int32_t* n);
catena_status CATENA_CALL open(catena_ctx* ctx, int32_t ordinal, void** dev);
void CATENA_CALL close(void* dev);
// "" and "sm_80" ...: the capability at least; "sm_90a": exactly that one.
int32_t CATENA_CALL supports_isa(void* dev, const char* isa);

// One call of the backend: makes a device the thread's current one, as CUDA's calls want it, and gives
// the one before back. Keeps the first failure, with a text for the host: which call, on which device,
// CUDA's name and text of the error. ctx may be NULL where nobody asks.
class Scope {
public:
    Scope(catena_ctx* ctx, const char* function, int ordinal);
    Scope(catena_ctx* ctx, const char* function, void* dev)
        : Scope(ctx, function, device_of(dev).ordinal) {}

    // Nothing failed yet. What makes something asks first: it would be made on another device.
    bool ok() const { return status_ == CATENA_OK; }
    // Whether it was cudaSuccess. detail: what more there is to say.
    bool check(cudaError_t error, const char* call, const char* detail = "");
    catena_status status() const { return status_; }

private:
    catena_ctx* const ctx_;
    const char* const function_;
    const int ordinal_;
    const catena::plugin::cuda::CurrentDevice current_;
    catena_status status_ = CATENA_OK;
};

// While it lives, this thread's calls leave recordings of streams alone: CUDA takes questions, waits for
// other streams, and what is made once for all, for a mistake where the thread records. Not for what
// frees. Behind a Scope: the exchange itself makes a context on the thread's device.
class BesideRecording {
public:
    explicit BesideRecording(const Scope& scope) : active_(scope.ok()) { exchange(); }
    ~BesideRecording() { exchange(); }
    BesideRecording(const BesideRecording&) = delete;
    BesideRecording& operator=(const BesideRecording&) = delete;

private:
    void exchange() {
        if (active_) static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_));
    }
    const bool active_;
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace catena_cuda
