// Counts and opens devices, and reports why there are none; implements Scope.
#include "backend.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace catena_cuda {
namespace {

struct Version {
    int major;
    int minor;
};
Version version(int number) { return {number / 1000, number % 1000 / 10}; }

// Clears CUDA's last error unless it is sticky, so that later calls do not report it as their own.
void forget_error() { static_cast<void>(cudaGetLastError()); }

// The process that first found GPUs. CUDA does not work in processes that it forks afterwards.
constinit std::atomic<pid_t> first_process = 0;

bool is_forked() {
    const pid_t first = first_process.load(std::memory_order_relaxed);
    return first != 0 && first != getpid();
}

const char* reason(cudaError_t error) {
    if (error == cudaErrorInitializationError && is_forked())
        return "expected the process that first asked for GPUs, or a newly started one, got one "
               "that "
               "fork() made";
    switch (error) {
        case cudaErrorNoDevice: return "there is no GPU, or CUDA_VISIBLE_DEVICES hides it";
        case cudaErrorInsufficientDriver: return "the driver is missing, or too old";
        default: return cudaGetErrorString(error);
    }
}

}  // namespace

catena_status count(catena_ctx* ctx, int32_t* n) {
    *n = 0;
    int devices = 0;
    if (is_forked())
        return fail(ctx, CATENA_E_DEVICE, "[cuda count] process: %s",
                    reason(cudaErrorInitializationError));
    if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess) {
        int driver = 0;
        int runtime = 0;
        static_cast<void>(cudaDriverGetVersion(&driver));
        static_cast<void>(cudaRuntimeGetVersion(&runtime));
        forget_error();
        const Version d = version(driver);
        const Version r = version(runtime);
        if (driver == 0)
            return fail(
                ctx, CATENA_E_DEVICE,
                "[cuda count] cudaGetDeviceCount: %s (%s): expected a driver for CUDA %d.%d "
                "or newer, got none",
                cudaGetErrorName(error), reason(error), r.major, r.minor);
        return fail(ctx, CATENA_E_DEVICE,
                    "[cuda count] cudaGetDeviceCount: %s (%s): the driver is for CUDA %d.%d, the "
                    "plugin for CUDA %d.%d",
                    cudaGetErrorName(error), reason(error), d.major, d.minor, r.major, r.minor);
    }
    pid_t none = 0;
    first_process.compare_exchange_strong(none, getpid(), std::memory_order_relaxed);
    *n = devices;
    return CATENA_OK;
}

catena_status open(catena_ctx* ctx, int32_t ordinal, void** dev) {
    *dev = nullptr;
    int32_t devices = 0;
    if (const catena_status status = count(ctx, &devices); status != CATENA_OK) return status;
    if (ordinal < 0 || ordinal >= devices)
        return fail(ctx, CATENA_E_DEVICE, "[cuda open] ordinal: expected 0 to %d, got %d",
                    devices - 1, ordinal);
    cudaDeviceProp p;
    if (const cudaError_t error = cudaGetDeviceProperties(&p, ordinal); error != cudaSuccess) {
        forget_error();
        return fail(ctx, CATENA_E_DEVICE,
                    "[cuda open] cudaGetDeviceProperties of device %d: %s (%s)", ordinal,
                    cudaGetErrorName(error), cudaGetErrorString(error));
    }
    const int capability = p.major * 10 + p.minor;
    if (const int least = least_capability(); capability < least)
        return fail(
            ctx, CATENA_E_DEVICE,
            "[cuda open] device %d: expected capability %d.%d or newer, which this build has "
            "code for, got %d.%d (%s)",
            ordinal, least / 10, least % 10, p.major, p.minor, p.name);
    int reads_host = 0;
    if (cudaDeviceGetAttribute(&reads_host, cudaDevAttrPageableMemoryAccess, ordinal) !=
        cudaSuccess)
        forget_error();
    auto* device = new (std::nothrow) Device;
    if (device == nullptr) return fail(ctx, CATENA_E_NOMEM, "[cuda open] out of memory");
    device->ordinal = ordinal;
    device->capability = capability;
    device->reads_host = reads_host != 0;
    device->processors = p.multiProcessorCount;
    std::snprintf(device->about, sizeof device->about,
                  "%s, capability %d.%d, %d multiprocessors, %.1f GiB", p.name, p.major, p.minor,
                  p.multiProcessorCount, static_cast<double>(p.totalGlobalMem) / (1u << 30));
    *dev = device;
    return CATENA_OK;
}

void close(void* dev) { delete static_cast<Device*>(dev); }

int32_t supports_isa(void* dev, const char* isa) {
    if (*isa == 0) return 1;
    if (std::strncmp(isa, "sm_", 3) != 0) return 0;
    char* end = nullptr;
    const long wanted = std::strtol(isa + 3, &end, 10);
    if (end == isa + 3 || wanted <= 0) return 0;
    const int capability = device_of(dev).capability;
    if (std::strcmp(end, "a") == 0) return capability == wanted ? 1 : 0;
    return *end == 0 && capability >= wanted ? 1 : 0;
}

Scope::Scope(catena_ctx* ctx, const char* function, int ordinal)
    : ctx_(ctx), function_(function), ordinal_(ordinal), current_(ordinal) {
    check(current_.error(), current_.call());
}

bool Scope::check(cudaError_t error, const char* call, const char* detail) {
    if (error == cudaSuccess) return true;
    forget_error();
    if (status_ != CATENA_OK) return false;
    status_ = error == cudaErrorMemoryAllocation ? CATENA_E_NOMEM : CATENA_E_DEVICE;
    if (ctx_ != nullptr)
        fail(ctx_, status_, "[cuda %s] %s on device %d: %s (%s)%s%s", function_, call, ordinal_,
             cudaGetErrorName(error), reason(error), *detail != 0 ? ": " : "", detail);
    return false;
}

}  // namespace catena_cuda
