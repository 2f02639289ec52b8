// Finds cuDNN, and asks whether it is wanted.
#include "library.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "catena/abi/ext/draft/vendor.h"

namespace catena_cudnn {
namespace {

constinit Settings current_settings;

bool is(const char* variable, const char* text) {
    const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
    return value != nullptr && std::strcmp(value, text) == 0;
}

const catena_vendor* vendor(catena_ctx* ctx) {
    const void* const* tables = host().extensions(ctx, CATENA_VENDOR_DRAFT_1);
    return tables == nullptr ? nullptr : static_cast<const catena_vendor*>(*tables);
}

// Functions by their names.
struct Finder {
    template <class F>
    void operator()(const char* name, F*& function) {
        function = reinterpret_cast<F*>(dlsym(dl_handle, name));
        all = all && function != nullptr;
    }
    void* dl_handle;
    bool all = true;
};

struct Found {
    const Library* graphs = nullptr;
    const Operations* operations = nullptr;
};
// Without a word where there is none: the reason is the context's, and the next kernel takes the call.
Found find(catena_ctx* ctx) {
    constexpr std::int64_t oldest = 90000;
    const catena_vendor* const table = vendor(ctx);
    if (table == nullptr) return {};
    void* dl_handle = nullptr;
    std::int64_t version = 0;
    if (table->open(ctx, "cudnn", &dl_handle, &version) != CATENA_OK || version < oldest) return {};
    static Library library;
    static Operations operations;
    if (!library.find(dl_handle)) return {};
    return {&library, operations.find(dl_handle) ? &operations : nullptr};
}
const Found& found(catena_ctx* ctx) {
    static const Found once = find(ctx);
    return once;
}

}  // namespace

void read_settings() {
    Settings& s = current_settings;
    s = {};
    s.enabled = !is("CATENA_CUDNN", "0");
    s.autotune = is("CATENA_CUDNN_AUTOTUNE", "1");
    s.nondeterministic = is("CATENA_CUDNN_NONDETERMINISTIC", "1");
    s.tf32 = is("CATENA_CUDA_TF32", "1");
    const char* bytes = std::getenv("CATENA_CUDNN_WORKSPACE");  // NOLINT(concurrency-mt-unsafe)
    if (bytes == nullptr) return;
    char* end = nullptr;
    s.workspace = std::strtoll(bytes, &end, 10);
    if (end == bytes || *end != 0 || s.workspace < 0) s.wrong_workspace = bytes;
}
const Settings& settings() { return current_settings; }

bool Library::find(void* dl_handle) {
    Finder found{dl_handle};
    found("cudnnGetErrorString", error_string);
    found("cudnnBackendCreateDescriptor", create);
    found("cudnnBackendDestroyDescriptor", destroy);
    found("cudnnBackendSetAttribute", set);
    found("cudnnBackendGetAttribute", get);
    found("cudnnBackendFinalize", finalize);
    found("cudnnBackendExecute", execute);
    return found.all;
}
bool Operations::find(void* dl_handle) {
    Finder found{dl_handle};
    found("cudnnCreateTensorDescriptor", create_tensor);
    found("cudnnSetTensor4dDescriptor", set_tensor);
    found("cudnnDestroyTensorDescriptor", destroy_tensor);
    found("cudnnCreatePoolingDescriptor", create_pooling);
    found("cudnnSetPooling2dDescriptor", set_pooling);
    found("cudnnDestroyPoolingDescriptor", destroy_pooling);
    found("cudnnCreateLRNDescriptor", create_lrn);
    found("cudnnSetLRNDescriptor", set_lrn);
    found("cudnnDestroyLRNDescriptor", destroy_lrn);
    found("cudnnPoolingForward", pooling_forward);
    found("cudnnPoolingBackward", pooling_backward);
    found("cudnnSoftmaxForward", softmax_forward);
    found("cudnnSoftmaxBackward", softmax_backward);
    found("cudnnLRNCrossChannelForward", lrn_forward);
    found("cudnnLRNCrossChannelBackward", lrn_backward);
    found("cudnnBatchNormalizationForwardTraining", batch_forward);
    found("cudnnBatchNormalizationForwardInference", batch_inference);
    found("cudnnBatchNormalizationBackward", batch_backward);
    return found.all;
}

const Library* library(catena_ctx* ctx) { return found(ctx).graphs; }
const Operations* operations(catena_ctx* ctx) { return found(ctx).operations; }

bool wanted(catena_ctx* ctx) {
    return settings().enabled && host().config(ctx, "use_cudnn", 1) != 0 && library(ctx) != nullptr;
}

cudnnHandle_t handle_of(catena_ctx* ctx, const catena_call& call) {
    void* handle = nullptr;
    const catena_status status = vendor(ctx)->handle(ctx, call.dev, call.stream, "cudnn", &handle);
    if (status != CATENA_OK) throw Error(status);  // the host has the text
    return static_cast<cudnnHandle_t>(handle);
}

namespace {

catena_status status_of(cudnnStatus_t status) {
    switch (status) {
        case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
        case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED: return CATENA_E_NOMEM;
        default: return CATENA_E_DEVICE;
    }
}

}  // namespace

Refusal::Refusal(const Library& cudnn, const char* call, cudnnStatus_t status)
    : Error(status_of(status), std::string("[cudnn] ") + call + ": expected success, got status " +
                                   std::to_string(static_cast<int>(status)) + " (" +
                                   cudnn.error_string(status) + ")") {}

}  // namespace catena_cudnn
