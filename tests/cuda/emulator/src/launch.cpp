// Launches: rejects what a device would reject, then submits the grid to the stream.
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "config.hpp"
#include "cuda_runtime.h"
#include "device.hpp"
#include "grid.hpp"
#include "library.hpp"
#include "stream.hpp"

using namespace catena_emulator;

namespace {

constexpr std::size_t most_shared = std::size_t{48} << 10;

bool is_possible(dim3 blocks, dim3 threads) {
    return blocks.x >= 1 && blocks.x <= 0x7fffffff && blocks.y >= 1 && blocks.y <= 65535 &&
           blocks.z >= 1 && blocks.z <= 65535 && threads.x >= 1 && threads.x <= 1024 &&
           threads.y >= 1 && threads.y <= 1024 && threads.z >= 1 && threads.z <= 64 &&
           std::uint64_t{threads.x} * threads.y * threads.z <= 1024;
}

// Checks words of the arguments that look like addresses: a kernel that is given host memory would
// fail on a device.
std::string wrong_argument(std::span<const Argument> arguments, const Device& device) {
    for (std::size_t i = 0; i < arguments.size(); ++i)
        for (std::size_t at = 0; at + 8 <= arguments[i].bytes; at += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, static_cast<const char*>(arguments[i].data) + at, sizeof word);
            if (std::string why = wrong_address(word, device); !why.empty())
                return "argument " + std::to_string(i) + " of a kernel, its byte " +
                       std::to_string(at) + ": " + why;
        }
    return {};
}

// A kernel and copies of its arguments.
struct Bound {
    Bound(Call how, void (*what)(), std::span<const Argument> arguments) : call(how), kernel(what) {
        for (const Argument& from : arguments) {
            copies.emplace_back(new (std::align_val_t(argument_alignment)) std::byte[from.bytes]);
            std::memcpy(copies.back().get(), from.data, from.bytes);
            pointers.push_back(copies.back().get());
        }
    }
    struct Free {
        void operator()(std::byte* data) const {
            operator delete[](data, std::align_val_t(argument_alignment));
        }
    };
    Call call;
    void (*kernel)();
    std::vector<std::unique_ptr<std::byte, Free>> copies;
    std::vector<void*> pointers;
};

}  // namespace

namespace catena_emulator {

cudaError_t launch(const cudaLaunchConfig_t& config, Call call, void (*kernel)(),
                   const Argument* arguments, std::size_t n) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    if (!is_possible(config.gridDim, config.blockDim)) return note(cudaErrorInvalidConfiguration);
    const std::lock_guard lock(api());
    if (config.dynamicSmemBytes > most_shared) return note(cudaErrorInvalidValue);
    const auto stream = find_stream(config.stream);
    if (stream == nullptr || stream->device->ordinal != current_ordinal())
        return note(cudaErrorInvalidResourceHandle);
    Device& device = *stream->device;
    std::string wrong = wrong_argument({arguments, n}, device);
    const auto bound = std::make_shared<const Bound>(call, kernel, std::span(arguments, n));
    Grid grid = {config.gridDim, config.blockDim, config.dynamicSmemBytes,
                 [bound] { bound->call(bound->kernel, bound->pointers.data()); }};
    submit(*stream, [&device, grid = std::move(grid), wrong = std::move(wrong)] {
        if (__atomic_load_n(reinterpret_cast<const int*>(&device.fault), __ATOMIC_ACQUIRE) != 0)
            return;
        if (!wrong.empty()) return fault(device, cudaErrorIllegalAddress, wrong);
        const Access access;
        if (const std::string why = run_grid(grid); !why.empty())
            fault(device, cudaErrorLaunchFailure, why);
    });
    return cudaSuccess;
}

}  // namespace catena_emulator

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** args) {
    const KernelEntry* entry = find_kernel(kernel);
    if (entry == nullptr) return note(cudaErrorInvalidDeviceFunction);
    return entry->launch(*config, args);
}

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** args,
                             std::size_t shared_bytes, cudaStream_t stream) {
    const cudaLaunchConfig_t config = {grid, block, shared_bytes, stream, nullptr, 0};
    return cudaLaunchKernelExC(&config, kernel, args);
}
