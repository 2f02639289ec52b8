// Makes a device the thread's current one within a scope.
#pragma once

#include <cuda_runtime.h>

#include <atomic>

namespace catena::plugin::cuda {

// CUDA calls use `device` while this object exists; then the previous device is current again.
//
// Calling cudaSetDevice() for the previous device would create a context on it, hundreds of
// megabytes, in a process that never used it. Not restoring it would move other CUDA code in this
// thread, which may have set no device, to another device. So the primary context of the device,
// which the runtime uses, is pushed onto the thread's stack of contexts and popped later. This also
// works if other CUDA code has made its own context current, on any device.
class CurrentDevice {
public:
    explicit CurrentDevice(int device) {
        const Driver& driver = Driver::get();
        if (failed(driver.error, "cudaGetDriverEntryPointByVersion")) return;
        void* current = nullptr;
        if (driver.current(&current) != 0) current = nullptr;
        if (current == nullptr) {  // the runtime makes the primary context of its device current
            int now = -1;
            if (failed(cudaGetDevice(&now), "cudaGetDevice") || now == device) return;
        }
        void* const context = context_of(driver, device);
        if (context == nullptr || context == current) return;
        if (driver.push(context) == 0) pop_ = driver.pop;
        else failed(cudaErrorInvalidDevice, "cuCtxPushCurrent");
    }
    ~CurrentDevice() {
        void* context = nullptr;
        if (pop_ != nullptr) static_cast<void>(pop_(&context));
    }
    CurrentDevice(const CurrentDevice&) = delete;
    CurrentDevice& operator=(const CurrentDevice&) = delete;

    cudaError_t error() const { return error_; }
    const char* call() const { return call_; }  // the CUDA call that failed

private:
    // Functions of the driver, looked up by the runtime, so that nothing is linked with the driver.
    struct Driver {
        int (*current)(void** context) = nullptr;
        int (*retain)(void** context, int device) = nullptr;
        int (*push)(void* context) = nullptr;
        int (*pop)(void** context) = nullptr;
        cudaError_t error = cudaSuccess;

        Driver() {
            find("cuCtxGetCurrent", current);
            find("cuDevicePrimaryCtxRetain", retain);
            find("cuCtxPushCurrent", push);
            find("cuCtxPopCurrent", pop);
        }
        template <class F>
        void find(const char* name, F*& function) {
            void* address = nullptr;
            cudaDriverEntryPointQueryResult result = {};
            const cudaError_t e =
                cudaGetDriverEntryPointByVersion(name, &address, 12000, cudaEnableDefault, &result);
            function = reinterpret_cast<F*>(address);
            if (e != cudaSuccess) error = e;
            else if (address == nullptr) error = cudaErrorInsufficientDriver;
        }
        static const Driver& get() {
            static const Driver found;
            return found;
        }
    };

    bool failed(cudaError_t error, const char* call) {
        if (error == cudaSuccess) return false;
        error_ = error;
        call_ = call;
        return true;
    }
    // Returns the primary context, which is retained until the process ends; null on failure.
    void* context_of(const Driver& driver, int device) {
        constexpr int most = 64;
        static constinit std::atomic<void*> known[most] = {};
        void* context = device < most ? known[device].load(std::memory_order_acquire) : nullptr;
        if (context != nullptr) return context;
        constexpr int out_of_memory = 2;
        if (const int result = driver.retain(&context, device); result != 0) {
            failed(result == out_of_memory ? cudaErrorMemoryAllocation : cudaErrorInvalidDevice,
                   "cuDevicePrimaryCtxRetain");
            return nullptr;
        }
        if (device < most) known[device].store(context, std::memory_order_release);
        return context;
    }

    cudaError_t error_ = cudaSuccess;
    const char* call_ = "";
    int (*pop_)(void**) = nullptr;
};

}  // namespace catena::plugin::cuda
