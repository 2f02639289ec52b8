// cuDNN's functions, found by name in the library that the backend opened (nothing is linked to it); the
// settings from the environment; and the kernels of this plugin.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <vector>

#include <catena/plugin/kernel.hpp>

namespace catena_cudnn {

using namespace catena::plugin;

// Settings from the environment, read once when the plugin is loaded.
struct Settings {
    bool enabled = true;                             // CATENA_CUDNN=0: none of these kernels runs
    std::int64_t workspace = std::int64_t{1} << 28;  // CATENA_CUDNN_WORKSPACE, in bytes
    bool autotune = false;                           // CATENA_CUDNN_AUTOTUNE=1
    bool nondeterministic = false;                   // CATENA_CUDNN_NONDETERMINISTIC=1
    bool tf32 = false;                               // CATENA_CUDA_TF32=1
    const char* wrong_workspace = nullptr;           // the value, if it is not a number of bytes

    // Whether kernels whose results may differ between runs are added to those that are deterministic.
    bool varying() const { return autotune || nondeterministic; }
};
void read_settings();  // [load]
const Settings& settings();

// The functions of cuDNN that this plugin calls.
struct Library {
    decltype(&cudnnGetErrorString) error_string;
    decltype(&cudnnBackendCreateDescriptor) create;
    decltype(&cudnnBackendDestroyDescriptor) destroy;
    decltype(&cudnnBackendSetAttribute) set;
    decltype(&cudnnBackendGetAttribute) get;
    decltype(&cudnnBackendFinalize) finalize;
    decltype(&cudnnBackendExecute) execute;
    std::int64_t version = 0;  // as in CUDNN_VERSION: 91900 is 9.19.0

    // Looks up all functions. Returns false if one is missing.
    bool find(void* dl_handle);
};
// [any] Returns cuDNN 9, looked up once, or null if it is unavailable. ctx: of a call on "cuda".
const Library* library(catena_ctx* ctx);
// Whether cuDNN is available and neither the environment nor the thread's configuration disables it.
bool wanted(catena_ctx* ctx);
// Returns the handle of the call's stream and the calling thread. Throws Error.
cudnnHandle_t handle_of(catena_ctx* ctx, const catena_call& call);

inline bool is_no_memory(cudnnStatus_t status) {
    return status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
           status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
}
class Refusal : public Error {
public:
    Refusal(const Library& cudnn, const char* call, cudnnStatus_t status);
};
inline void check(const Library& cudnn, const char* call, cudnnStatus_t status) {
    if (status != CUDNN_STATUS_SUCCESS) [[unlikely]]
        throw Refusal(cudnn, call, status);
}

// varying: may be faster, but results may differ between runs.
catena_kernel kernel_of(const char* function, int phase, const catena_dtype* types, bool varying,
                        decltype(catena_kernel::supports) supports,
                        decltype(catena_kernel::plan) plan, decltype(catena_kernel::run) run);
std::vector<catena_kernel> convolution_kernels();
std::vector<catena_kernel> attention_kernels();

// Whether results must be bit-identical: not in varying kernels, unless the call requires it.
inline bool is_deterministic(const catena_call& call, bool varying) {
    return !varying || (call.flags & CATENA_CALL_DETERMINISTIC) != 0;
}
inline cudnnDataType_t type_of(const catena_tensor& t) {
    if (t.dl.dtype.code == CATENA_CODE_BFLOAT) return CUDNN_DATA_BFLOAT16;
    return t.dl.dtype.bits == 64   ? CUDNN_DATA_DOUBLE
           : t.dl.dtype.bits == 32 ? CUDNN_DATA_FLOAT
                                   : CUDNN_DATA_HALF;
}
inline void* data(const catena_tensor* t) { return t == nullptr ? nullptr : data_of<char>(*t); }

// Computes y (n, c, ...) += b (c) on the call's stream.
void add_bias(const catena_call& call, const catena_tensor& b, catena_tensor& y);

// Sums images (n, c, ...) over all axes but c into sums (c), or adds them to sums.
void sum_channels(const catena_call& call, const catena_tensor& images, catena_tensor& sums,
                  bool add, void* scratch);
std::uint64_t sum_channels_scratch(const catena_tensor& images);

}  // namespace catena_cudnn
