// cuDNN as the backend opened it, found by name: nothing is linked with it. What the user says. And the
// kernels: those that plugin.cpp lists, and those of this plugin's own.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <vector>

#include <catena/plugin/kernel.hpp>

namespace catena_cudnn {

using namespace catena::plugin;

// What the environment says, read once when the plugin is loaded.
struct Settings {
    bool enabled = true;                             // CATENA_CUDNN=0: none of these kernels runs
    std::int64_t workspace = std::int64_t{1} << 28;  // CATENA_CUDNN_WORKSPACE, in bytes
    bool autotune = false;                           // CATENA_CUDNN_AUTOTUNE=1
    bool nondeterministic = false;                   // CATENA_CUDNN_NONDETERMINISTIC=1
    bool tf32 = false;                               // CATENA_CUDA_TF32=1
    const char* wrong_workspace = nullptr;           // what is no number of bytes

    // Kernels that may compute other bits the next time exist, beside those that do not.
    bool varying() const { return autotune || nondeterministic; }
};
void read_settings();  // [load]
const Settings& settings();

// The functions of cuDNN that are called.
struct Library {
    decltype(&cudnnGetErrorString) error_string;
    decltype(&cudnnBackendCreateDescriptor) create;
    decltype(&cudnnBackendDestroyDescriptor) destroy;
    decltype(&cudnnBackendSetAttribute) set;
    decltype(&cudnnBackendGetAttribute) get;
    decltype(&cudnnBackendFinalize) finalize;
    decltype(&cudnnBackendExecute) execute;

    // false: it lacks one of them.
    bool find(void* dl_handle);
};
// cuDNN 9, or null if it is not available; looked up once. [any] ctx is of a call on "cuda".
const Library* library(catena_ctx* ctx);
// Whether this call may use it: there is one, and neither the environment nor the thread forbids it.
bool wanted(catena_ctx* ctx);
// The handle of the call's stream and thread. Throws.
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

std::vector<catena_kernel> convolution_kernels();

// y (n, c, ...) += b (c), on the call's stream.
void add_bias(const catena_call& call, const catena_tensor& b, catena_tensor& y);

// sums (c) = images (n, c, ...) summed over all but c, or added to sums.
void sum_channels(const catena_call& call, const catena_tensor& images, catena_tensor& sums,
                  bool add, void* scratch);
std::uint64_t sum_channels_scratch(const catena_tensor& images);

}  // namespace catena_cudnn
