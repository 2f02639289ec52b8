// Finds cuDNN and its functions, and reads the settings.
#include "library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include <catena/plugin/tables.hpp>

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

// Returns null without a log message if cuDNN is unavailable: ctx keeps the reason, and another kernel runs.
const Library* find(catena_ctx* ctx) {
    constexpr std::int64_t oldest = 90000;
    const catena_vendor* const table = vendor(ctx);
    if (table == nullptr) return nullptr;
    void* dl_handle = nullptr;
    std::int64_t version = 0;
    if (table->open(ctx, "cudnn", &dl_handle, &version) != CATENA_OK || version < oldest)
        return nullptr;
    static Library library;
    library.version = version;
    return library.find(dl_handle) ? &library : nullptr;
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
    bool all = true;
    const auto found = [&]<class F>(const char* name, F*& function) {
        function = reinterpret_cast<F*>(dlsym(dl_handle, name));
        all = all && function != nullptr;
    };
    found("cudnnGetErrorString", error_string);
    found("cudnnBackendCreateDescriptor", create);
    found("cudnnBackendDestroyDescriptor", destroy);
    found("cudnnBackendSetAttribute", set);
    found("cudnnBackendGetAttribute", get);
    found("cudnnBackendFinalize", finalize);
    found("cudnnBackendExecute", execute);
    return all;
}

const Library* library(catena_ctx* ctx) {
    static const Library* const once = find(ctx);
    return once;
}

bool wanted(catena_ctx* ctx) {
    return settings().enabled && host().config(ctx, "use_cudnn", 1) != 0 && library(ctx) != nullptr;
}

cudnnHandle_t handle_of(catena_ctx* ctx, const catena_call& call) {
    void* handle = nullptr;
    check_status(vendor(ctx)->handle(ctx, call.dev, call.stream, "cudnn", &handle));
    return static_cast<cudnnHandle_t>(handle);
}

catena_kernel kernel_of(const char* function, int phase, const catena_dtype* types, bool varying,
                        decltype(catena_kernel::supports) supports,
                        decltype(catena_kernel::plan) plan, decltype(catena_kernel::run) run) {
    catena_kernel k = plain_kernel(function, phase, "cuda", types);
    k.name = varying ? "cuDNN, varying" : "cuDNN";
    if (varying) k.flags &= ~static_cast<std::uint32_t>(CATENA_KERNEL_DETERMINISTIC);
    k.priority = CATENA_PRIORITY_VENDOR + (varying ? 1 : 0);
    k.supports = supports;
    k.plan = plan;
    k.run = run;
    return k;
}

Refusal::Refusal(const Library& cudnn, const char* call, cudnnStatus_t status)
    : Error(is_no_memory(status) ? CATENA_E_NOMEM : CATENA_E_DEVICE,
            std::string("[cudnn] ") + call + ": expected success, got status " +
                std::to_string(static_cast<int>(status)) + " (" + cudnn.error_string(status) +
                ")") {}

}  // namespace catena_cudnn
