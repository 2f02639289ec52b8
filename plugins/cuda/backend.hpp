// What the files of the plugin provide to each other: devices, their memory, streams and events.
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

using catena::plugin::fail;

// Every callback that uses containers, locks or statics of its own does so in here: no exception leaves
// the C ABI. function: as in texts.
template <class Body>
catena_status guarded(catena_ctx* ctx, const char* function, const Body& body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return fail(ctx, CATENA_E_NOMEM, "[cuda %s] out of memory", function);
    } catch (const std::exception& e) {
        return fail(ctx, CATENA_E_INTERNAL, "[cuda %s] %s", function, e.what());
    }
}

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

// One call of the backend: makes the device current for the thread, and restores the previous one.
// Keeps the first failure with a text for the host. ctx may be NULL.
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
    // The last call of the function: what the function returns.
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

// While it exists, calls of this thread may query and wait although the thread records a stream. Not
// for calls that free. Construct it after a Scope, because it makes a context on the thread's device.
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
// "" and "sm_80" ...: the capability at least; "sm_90a": exactly that one.
int32_t CATENA_CALL supports_isa(void* dev, const char* isa);

// memory.cpp: as in catena_backend.
catena_status CATENA_CALL alloc(catena_ctx* ctx, void* dev, catena_stream* stream, uint64_t bytes,
                                void** data);
void CATENA_CALL release(void* dev, catena_stream* stream, void* data, uint64_t bytes);
catena_status CATENA_CALL copy(catena_ctx* ctx, void* dev, catena_stream* stream, void* dst,
                               const void* src, uint64_t bytes, int32_t direction);
catena_status CATENA_CALL memory(catena_ctx* ctx, void* dev, uint64_t* free_bytes,
                                 uint64_t* total_bytes);

// elements.cu. The lowest capability that the modules of this build have code for: 80 for 8.0.
int least_capability();
// n elements of value_bytes each, by a kernel on the current device with so many multiprocessors.
cudaError_t launch_fill(cudaStream_t stream, int processors, void* dst, const void* value,
                        uint32_t value_bytes, uint64_t n);
// In catena_memory.
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
// The device of a stream, also while the stream is recorded.
cudaError_t owner_of(cudaStream_t stream, int* ordinal);
// With CUDA's flags.
catena_status make_event(catena_ctx* ctx, void* dev, unsigned flags, catena_event** event);

// vendor.cpp: NVIDIA's libraries, opened on first use; handles exist for each stream and thread.
// The environment is read when the plugin is loaded. Paths or names of the libraries; empty if unset.
struct Settings {
    std::string cublas;  // CATENA_CUBLAS
    std::string cudnn;   // CATENA_CUDNN_LIBRARY
    std::string nvrtc;   // CATENA_NVRTC
    bool tf32 = false;   // CATENA_CUDA_TF32=1: products of float32 may round their inputs
};
const Settings& settings();

// A library as dlopen() gave it. name: "cublas", "cudnn" or "nvrtc".
struct Library {
    void* dl = nullptr;
    std::int64_t version = 0;
    std::string error;  // why dl is NULL
};

// [any] NULL if it is none of these. This and handle_of() throw std::bad_alloc.
const Library* library(const char* name);

// The owner of a handle: settings of other users do not affect the backend's products.
enum class User { backend, others };
// [compute] The handle of a library for the stream, which is the device's, and the calling thread.
// Threads that ended leave theirs to later ones.
catena_status handle_of(catena_ctx* ctx, int device, cudaStream_t stream, const char* name,
                        User user, void** handle);

// The stream's handles end with it; its device is the current one.
void drop_handles(int device, cudaStream_t stream);

extern const catena_memory memory_table;
extern const catena_events events_table;
extern const catena_vendor vendor_table;
extern const catena_blas blas_table;          // cuBLAS
extern const catena_compiler compiler_table;  // NVRTC, opened when the first kernel is made
extern const catena_graph graph_table;        // work of a stream, recorded once
extern const catena_ipc ipc_table;            // memory and events that processes share

}  // namespace catena_cuda
