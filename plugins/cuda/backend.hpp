// Declarations that the files of this plugin share: devices, memory, streams, events and libraries.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <new>
#include <string>

#include <catena/plugin/cuda/current.hpp>
#include <catena/plugin/tables.hpp>

#include "catena/abi/ext/blas.h"
#include "catena/abi/ext/compiler.h"
#include "catena/abi/ext/draft/events.h"
#include "catena/abi/ext/draft/graph.h"
#include "catena/abi/ext/draft/ipc.h"
#include "catena/abi/ext/draft/memory.h"
#include "catena/abi/ext/draft/vendor.h"

namespace catena_cuda {

using catena::plugin::check_status, catena::plugin::fail;

// Runs the body of a callback and returns the status of its exception, so that none crosses the C
// ABI. The host has the text of an Error, which check_status() threw. function: its name in messages.
template <class Body>
catena_status guarded(catena_ctx* ctx, const char* function, const Body& body) noexcept {
    try {
        body();
        return CATENA_OK;
    } catch (const catena::plugin::Error& e) {
        return e.status();
    } catch (const std::bad_alloc&) {
        return fail(ctx, CATENA_E_NOMEM, "[cuda %s] out of memory", function);
    } catch (const std::exception& e) {
        return fail(ctx, CATENA_E_INTERNAL, "[cuda %s] %s", function, e.what());
    }
}

// A device, as open() returns it.
struct Device {
    int ordinal = 0;
    int capability = 0;  // 90 for 9.0
    int processors = 0;
    bool reads_host = false;              // accesses pageable host memory directly
    char about[512] = {};                 // one readable line: name, capability, memory
    std::atomic<std::uint64_t> peers{0};  // bit i: enable_peer() was called for device i
};

inline Device& device_of(void* dev) { return *static_cast<Device*>(dev); }
inline cudaStream_t cuda(catena_stream* stream) { return reinterpret_cast<cudaStream_t>(stream); }
inline cudaEvent_t cuda(catena_event* event) { return reinterpret_cast<cudaEvent_t>(event); }

// The scope of one backend call: makes the device current for the thread and restores the previous one.
// Keeps the first failure and reports its message to the host. ctx may be NULL.
class Scope {
public:
    Scope(catena_ctx* ctx, const char* function, int ordinal);
    Scope(catena_ctx* ctx, const char* function, void* dev)
        : Scope(ctx, function, device_of(dev).ordinal) {}

    // Whether no call failed yet. Check it before creating objects: another device may be current.
    bool ok() const { return status_ == CATENA_OK; }
    // Returns whether error is cudaSuccess; otherwise records it. detail: text added to the message.
    bool check(cudaError_t error, const char* call, const char* detail = "");
    catena_status status() const { return status_; }
    // Checks the last CUDA call of a function and returns the status for the function.
    catena_status end(cudaError_t error, const char* call, const char* detail = "") {
        check(error, call, detail);
        return status_;
    }

private:
    catena_ctx* const ctx_;
    const char* const function_;
    const int ordinal_;
    const catena::plugin::cuda::CurrentDevice current_;
    catena_status status_ = CATENA_OK;
};

// Allows this thread to query, wait and allocate while it captures a stream. Not for calls that free
// memory. Construct it after a Scope, because it creates a context on the thread's current device.
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

// device.cpp: as in catena_backend.
catena_status CATENA_CALL count(catena_ctx* ctx, int32_t* n);
catena_status CATENA_CALL open(catena_ctx* ctx, int32_t ordinal, void** dev);
void CATENA_CALL close(void* dev);
// Whether the device runs isa: "" always; "sm_80": capability 8.0 or newer; "sm_90a": exactly 9.0.
int32_t CATENA_CALL supports_isa(void* dev, const char* isa);

// memory.cpp: as in catena_backend.
catena_status CATENA_CALL alloc(catena_ctx* ctx, void* dev, catena_stream* stream, uint64_t bytes,
                                void** data);
void CATENA_CALL release(void* dev, catena_stream* stream, void* data, uint64_t bytes);
catena_status CATENA_CALL copy(catena_ctx* ctx, void* dev, catena_stream* stream, void* dst,
                               const void* src, uint64_t bytes, int32_t direction);
catena_status CATENA_CALL memory(catena_ctx* ctx, void* dev, uint64_t* free_bytes,
                                 uint64_t* total_bytes);

// elements.cu. Returns the lowest capability that this build has code for: 80 for 8.0.
int least_capability();
// Fills n elements of 2, 4, 8 or 16 bytes each on the current device; for one byte there is a memset.
// processors: its multiprocessors.
cudaError_t launch_fill(cudaStream_t stream, int processors, void* dst, const void* value,
                        uint32_t value_bytes, uint64_t n);
// As in catena_memory.
catena_status CATENA_CALL convert(catena_ctx* ctx, void* dev, catena_stream* stream, void* dst,
                                  catena_dtype dst_dtype, const void* src, catena_dtype src_dtype,
                                  uint64_t n);

// stream.cpp: as in catena_backend. A catena_stream is a cudaStream_t, a catena_event a cudaEvent_t.
catena_status CATENA_CALL stream_create(catena_ctx* ctx, void* dev, catena_stream** stream);
void CATENA_CALL stream_destroy(void* dev, catena_stream* stream);
catena_status CATENA_CALL stream_sync(catena_ctx* ctx, void* dev, catena_stream* stream);
catena_status CATENA_CALL event_create(catena_ctx* ctx, void* dev, catena_event** event);
void CATENA_CALL event_destroy(void* dev, catena_event* event);
catena_status CATENA_CALL event_record(catena_ctx* ctx, void* dev, catena_event* event,
                                       catena_stream* stream);
catena_status CATENA_CALL event_wait(catena_ctx* ctx, void* dev, catena_event* event,
                                     catena_stream* stream);
catena_status CATENA_CALL sync(catena_ctx* ctx, void* dev);
// Finds the device of a stream, also while the stream is being captured.
cudaError_t owner_of(cudaStream_t stream, int* ordinal);
// Creates an event with CUDA's flags.
catena_status make_event(catena_ctx* ctx, void* dev, unsigned flags, catena_event** event);

// vendor.cpp: NVIDIA's libraries, opened on first use, and their handles, one per stream and thread.
// Settings are environment variables, read at load: paths or names of libraries, empty if unset.
struct Settings {
    std::string cublas;  // CATENA_CUBLAS
    std::string cudnn;   // CATENA_CUDNN_LIBRARY
    std::string nvrtc;   // CATENA_NVRTC
    bool tf32 = false;   // CATENA_CUDA_TF32=1: products of float32 may round their inputs
};
const Settings& settings();

// A library opened with dlopen().
struct Library {
    void* dl = nullptr;
    std::int64_t version = 0;
    std::string error;  // why dl is NULL
};

// [any] name: "cublas", "cudnn" or "nvrtc"; returns NULL for others. May throw std::bad_alloc.
const Library* library(const char* name);

// The owner of a handle. Handles are separate, so others' settings do not affect the backend's products.
enum class User { backend, others };
// [compute] Finds or creates the handle for the calling thread and the stream, which belongs to device.
// Later threads reuse the handles of threads that have ended. For bodies of guarded().
void* handle_of(catena_ctx* ctx, int device, cudaStream_t stream, const char* name, User user);

// Destroys the handles of a stream that is about to be destroyed. Its device must be current.
void drop_handles(int device, cudaStream_t stream);

extern const catena_memory memory_table;
extern const catena_events events_table;
extern const catena_vendor vendor_table;
extern const catena_blas blas_table;          // cuBLAS
extern const catena_compiler compiler_table;  // NVRTC, opened for the first kernel
extern const catena_graph graph_table;        // work of a stream, recorded once
extern const catena_ipc ipc_table;            // memory and events that processes share

}  // namespace catena_cuda
