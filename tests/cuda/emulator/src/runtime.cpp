// Errors, versions and devices.
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include "api.hpp"
#include "config.hpp"
#include "device.hpp"
#include "emulator/control.h"
#include "stream.hpp"

using namespace catena_emulator;

namespace catena_emulator {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::atomic<unsigned> contexts = 0;

// Set by catena_emulator_fail().
thread_local int calls = 0;
thread_local int failing = -1;
thread_local cudaError_t failing_with = cudaSuccess;

// The thread's stack of contexts: the runtime sets its top, the driver pushes and pops. It has no
// destructor, because devices are closed after thread_local objects are destroyed.
constexpr int most_contexts = 32;
struct Context {
    int device;
    bool foreign;  // not the device's primary context
};
thread_local Context context_stack[most_contexts] = {};
thread_local int context_top = 0;

struct Name {
    cudaError_t error;
    const char* name;
    const char* text;
};
constexpr Name names[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver", "the driver is too old"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "there is no device"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidKernelImage, "cudaErrorInvalidKernelImage", "invalid kernel image"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image for the device"},
    {cudaErrorInvalidPtx, "cudaErrorInvalidPtx", "invalid PTX"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorSymbolNotFound, "cudaErrorSymbolNotFound", "named symbol not found"},
    {cudaErrorNotReady, "cudaErrorNotReady", "not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal address was accessed"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
     "too many resources requested"},
    {cudaErrorPeerAccessAlreadyEnabled, "cudaErrorPeerAccessAlreadyEnabled",
     "peer access is enabled already"},
    {cudaErrorPeerAccessNotEnabled, "cudaErrorPeerAccessNotEnabled", "peer access is not enabled"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "not permitted while a stream is captured"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "the capture failed before"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "the capture was not begun on this stream"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "the capture has work that was not joined"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent", "the event was recorded in a capture"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

struct LastFault {
    std::mutex mutex;
    std::string text;
};
LastFault& last_fault() {
    static auto* const last = new LastFault;
    return *last;
}

bool is_device(int ordinal) { return ordinal >= 0 && ordinal < config().devices; }

cudaError_t driver() {
    // The driver works only in the process that started it, not in a child made by fork().
    static bool forked = false;
    [[maybe_unused]] static const int watched =
        pthread_atfork(nullptr, nullptr, [] { forked = true; });
    if (forked) return cudaErrorInitializationError;
    if (config().driver_error != 0) return static_cast<cudaError_t>(config().driver_error);
    return config().devices > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t current_fault() {
    return driver() == cudaSuccess ? fault_of(current_device()) : cudaSuccess;
}

}  // namespace

cudaError_t note(cudaError_t error) {
    if (error != cudaSuccess) last_error = error;
    return error;
}

int& current_ordinal() { return context_stack[context_top].device; }
void use_context(int device) { contexts.fetch_or(1u << device); }

cudaError_t enter_to_free() {
    if (const cudaError_t error = driver(); error != cudaSuccess) return note(error);
    use_context(current_ordinal());
    return note(current_fault());
}
cudaError_t enter() {
    if (calls++ == failing) return note(failing_with);
    // All streams and memory here belong to primary contexts.
    if (context_stack[context_top].foreign) return note(cudaErrorInvalidResourceHandle);
    return enter_to_free();
}

void fault(Device& device, cudaError_t error, const std::string& why) {
    int none = cudaSuccess;
    __atomic_compare_exchange_n(reinterpret_cast<int*>(&device.fault), &none, error, false,
                                __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    {
        const std::lock_guard lock(last_fault().mutex);
        last_fault().text = why;
    }
    std::fprintf(stderr, "emulator: device %d: %s: %s\n", device.ordinal, cudaGetErrorName(error),
                 why.c_str());
}
cudaError_t fault_of(const Device& device) {
    return static_cast<cudaError_t>(
        __atomic_load_n(reinterpret_cast<const int*>(&device.fault), __ATOMIC_ACQUIRE));
}

}  // namespace catena_emulator

void catena_emulator_fault(int device, int error) {
    fault(*devices()[static_cast<std::size_t>(device)], static_cast<cudaError_t>(error),
          "asked for by a test");
}

const char* catena_emulator_last_fault() {
    const std::lock_guard lock(last_fault().mutex);
    return last_fault().text.c_str();
}

const char* catena_emulator_writer(const void* data) {
    static thread_local std::string text;
    text = writer_of(data);
    return text.c_str();
}

unsigned catena_emulator_contexts(int forget) {
    return forget != 0 ? contexts.exchange(0) : contexts.load();
}

int catena_emulator_fail(int number, int error) {
    failing = number;
    failing_with = static_cast<cudaError_t>(error);
    return std::exchange(calls, 0);
}

void catena_emulator_foreign(int device) { context_stack[++context_top] = {device, true}; }

int catena_emulator_leave() {
    const bool foreign = context_stack[context_top].foreign;
    if (context_top > 0) --context_top;
    return foreign ? 1 : 0;
}

long catena_emulator_live(long change) {
    static std::atomic<long> live = 0;
    return live += change;
}

cudaError_t cudaGetLastError() {
    if (const cudaError_t error = current_fault(); error != cudaSuccess) return error;
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError() {
    const cudaError_t error = current_fault();
    return error != cudaSuccess ? error : last_error;
}

const char* cudaGetErrorName(cudaError_t error) {
    for (const Name& n : names)
        if (n.error == error) return n.name;
    return "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
    for (const Name& n : names)
        if (n.error == error) return n.text;
    return "unrecognized error code";
}

cudaError_t cudaDriverGetVersion(int* version) {
    *version = config().driver_error != 0 ? (config().driver_error == 35 ? 11040 : 0) : 13000;
    return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
    *count = 0;
    if (const cudaError_t error = driver(); error != cudaSuccess) return note(error);
    *count = config().devices;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
    if (const cudaError_t error = driver(); error != cudaSuccess) return note(error);
    *device = current_ordinal();
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    if (const cudaError_t error = driver(); error != cudaSuccess) return note(error);
    if (!is_device(device)) return note(cudaErrorInvalidDevice);
    context_stack[context_top] = {device, false};
    use_context(device);
    return note(current_fault());
}

namespace {

// The driver's API. A context is its device's ordinal + 1; a foreign one, its ordinal + 1000.
constexpr int invalid_context = 201;
constexpr std::intptr_t foreign_from = 1000;

void* number_of(const Context& context) {
    return reinterpret_cast<void*>(context.device + (context.foreign ? foreign_from : 1));
}
int current_context(void** context) {
    const Context& top = context_stack[context_top];
    const bool made = top.foreign || (contexts.load() & 1u << top.device) != 0;
    *context = made ? number_of(top) : nullptr;
    return driver();
}
int retain_context(void** context, int device) {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    if (calls++ == failing) return failing_with;
    if (const cudaError_t error = driver(); error != cudaSuccess) return error;
    use_context(device);
    *context = number_of({device, false});
    return cudaSuccess;
}
int push_context(void* context) {
    const auto number = reinterpret_cast<std::intptr_t>(context);
    const bool foreign = number >= foreign_from;
    const auto device = static_cast<int>(number - (foreign ? foreign_from : 1));
    if (!is_device(device) || context_top + 1 == most_contexts) return invalid_context;
    context_stack[++context_top] = {device, foreign};
    if (!foreign) use_context(device);
    return cudaSuccess;
}
int pop_context(void** context) {
    if (context_top == 0) return invalid_context;
    *context = number_of(context_stack[context_top--]);
    return cudaSuccess;
}

struct DriverFunction {
    const char* name;
    void* address;
};

}  // namespace

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
    *function = nullptr;
    if (const cudaError_t error = driver(); error != cudaSuccess) return note(error);
    const DriverFunction all[] = {
        {"cuCtxGetCurrent", reinterpret_cast<void*>(&current_context)},
        {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(&retain_context)},
        {"cuCtxPushCurrent", reinterpret_cast<void*>(&push_context)},
        {"cuCtxPopCurrent", reinterpret_cast<void*>(&pop_context)}};
    for (const DriverFunction& f : all)
        if (std::strcmp(f.name, symbol) == 0) *function = f.address;
    if (result != nullptr)
        *result =
            *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    if (const cudaError_t error = driver(); error != cudaSuccess) return note(error);
    if (!is_device(device)) return note(cudaErrorInvalidDevice);
    *properties = {};
    std::snprintf(properties->name, sizeof properties->name, "Emulated device");
    properties->uuid.bytes[0] = static_cast<char>(device + 1);
    properties->totalGlobalMem = config().memory;
    properties->sharedMemPerBlock = 48 << 10;
    properties->sharedMemPerBlockOptin = 227 << 10;
    properties->major = config().capability / 10;
    properties->minor = config().capability % 10;
    properties->multiProcessorCount = 4;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->maxThreadsPerMultiProcessor = 2048;
    properties->pciBusID = device + 1;
    properties->concurrentKernels = properties->asyncEngineCount = 1;
    properties->unifiedAddressing = 1;
    const int extents[] = {1024, 1024, 64};
    const int blocks[] = {0x7fffffff, 65535, 65535};
    std::memcpy(properties->maxThreadsDim, extents, sizeof extents);
    std::memcpy(properties->maxGridSize, blocks, sizeof blocks);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    cudaDeviceProp p;
    if (const cudaError_t error = cudaGetDeviceProperties(&p, device); error != cudaSuccess)
        return error;
    switch (attribute) {
        case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
        case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
        case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
        case cudaDevAttrPageableMemoryAccess: *value = config().pageable ? 1 : 0; break;
        default: return note(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

// Only clears the error; memory and streams stay valid.
cudaError_t cudaDeviceReset() {
    if (const cudaError_t error = driver(); error != cudaSuccess) return note(error);
    __atomic_store_n(reinterpret_cast<int*>(&current_device().fault), 0, __ATOMIC_RELEASE);
    last_error = cudaSuccess;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    if (!is_device(device) || !is_device(peer)) return note(cudaErrorInvalidDevice);
    *can = config().peers && device != peer ? 1 : 0;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    int can = 0;
    if (flags != 0) return note(cudaErrorInvalidValue);
    if (const cudaError_t error = cudaDeviceCanAccessPeer(&can, current_ordinal(), peer);
        error != cudaSuccess)
        return error;
    if (can == 0) return note(cudaErrorInvalidDevice);
    const std::lock_guard lock(api());
    return current_device().peers.insert(peer).second ? cudaSuccess
                                                      : note(cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const std::lock_guard lock(api());
    return current_device().peers.erase(peer) == 1 ? cudaSuccess
                                                   : note(cudaErrorPeerAccessNotEnabled);
}
