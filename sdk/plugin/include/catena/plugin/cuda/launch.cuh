// Launches on the device and the stream of a call, with error messages.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>

#include "catena/plugin/cuda/current.hpp"
#include "catena/plugin/cuda/pack.cuh"
#include "catena/plugin/error.hpp"
#include "catena/plugin/kernel.hpp"

namespace catena::plugin::cuda {

inline constexpr int block = 256;  // threads

[[noreturn, gnu::cold]] inline void fail_cuda(const char* function, const char* what,
                                              cudaError_t error) {
    static_cast<void>(cudaGetLastError());  // clears the error, so that it is reported once
    throw Error(error == cudaErrorMemoryAllocation ? CATENA_E_NOMEM : CATENA_E_DEVICE,
                std::string("[") + function + "] " + what + ": " + cudaGetErrorString(error));
}

// Makes the call's device current for the thread while this object exists.
struct OnDevice : CurrentDevice {
    OnDevice(const char* function, int device) : CurrentDevice(device) {
        if (error() != cudaSuccess) fail_cuda(function, call(), error());
    }
};

// The stream on which work is queued, and the function that error messages name.
struct Queue {
    const char* function;
    cudaStream_t stream;
    int device;
    bool bfloat = false;  // AnyHalf is BFloat16

    template <class... P, class... A>
    void launch(void (*kernel)(P...), dim3 blocks, int threads, const A&... arguments) const {
        cudaLaunchConfig_t config = {};
        config.gridDim = blocks;
        config.blockDim = dim3(static_cast<unsigned>(threads));
        config.stream = stream;
        config.dynamicSmemBytes = bfloat ? 16 : 0;  // see any_half_is_bfloat()
        if (const cudaError_t e = cudaLaunchKernelEx(&config, kernel, P(arguments)...);
            e != cudaSuccess)
            fail_cuda(function, "launch", e);
    }
    void zero(void* data, std::size_t bytes) const {
        if (bytes == 0) return;
        if (const cudaError_t e = cudaMemsetAsync(data, 0, bytes, stream); e != cudaSuccess)
            fail_cuda(function, "cudaMemsetAsync", e);
    }
    // Returns the grid for n threads that iterate with the grid's stride: at most a few waves.
    dim3 grid(std::int64_t n) const {
        const std::int64_t needed = (n + block - 1) / block;
        return {static_cast<unsigned>(std::clamp<std::int64_t>(needed, 1, 32 * processors()))};
    }

private:
    int processors() const {
        constexpr int most = 64;
        static constinit std::atomic<int> known[most] = {};
        if (device < 0 || device >= most) return 128;
        int n = known[device].load(std::memory_order_relaxed);
        if (n != 0) return n;
        if (const cudaError_t e =
                cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device);
            e != cudaSuccess)
            fail_cuda(function, "cudaDeviceGetAttribute", e);
        n = std::max(n, 1);
        known[device].store(n, std::memory_order_relaxed);
        return n;
    }
};

inline Queue queue_of(const char* function, const catena_call& call, bool bfloat = false) {
    return {function, reinterpret_cast<cudaStream_t>(call.stream), call.device_id, bfloat};
}

// The argument of a handwritten kernel: a Call as on the CPU, whose work is launched on a stream.
// Pointers point to device memory; AnyHalf is either half type.
template <class F>
class Call : public plugin::Call<F, Isa::baseline> {
    using Base = plugin::Call<F, Isa::baseline>;

public:
    Call(catena_ctx* ctx, const catena_call& call, bool bfloat = false)
        : Base(ctx, call), queue_(queue_of(F::about.name, call, bfloat)) {}

    const Queue& queue() const { return queue_; }
    cudaStream_t stream() const { return queue_.stream; }
    // Launches kernel(arguments...) with `blocks` blocks of `threads` threads.
    template <class... P, class... A>
    void launch(void (*kernel)(P...), dim3 blocks, int threads, const A&... arguments) const {
        queue_.launch(kernel, blocks, threads, arguments...);
    }
    // Launches blocks of cuda::block for n threads, which iterate with the stride of the grid.
    template <class... P, class... A>
    void launch_for(std::int64_t n, void (*kernel)(P...), const A&... arguments) const {
        if (n > 0) queue_.launch(kernel, queue_.grid(n), block, arguments...);
    }
    template <class T>
    void zero(Tensor<T> t) const {
        queue_.zero(t.data, static_cast<std::size_t>(t.size()) * sizeof(T));
    }

private:
    Queue queue_;
};

}  // namespace catena::plugin::cuda
