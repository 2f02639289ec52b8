// Launches: rejects what a device would reject, then submits the grid to the stream.
#include <cstring>
#include <memory>
#include <vector>

#include "api.hpp"
#include "code.hpp"
#include "config.hpp"
#include "counts.hpp"
#include "device.hpp"
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

std::vector<std::byte> packed(const catena_machine::Kernel& kernel, void* const* arguments) {
    std::vector<std::byte> bytes(kernel.argument_bytes());
    for (const catena_machine::Parameter& p : kernel.parameters())
        std::memcpy(bytes.data() + p.offset, *arguments++, p.bytes);
    return bytes;
}

std::string describe(const void* context, std::uintptr_t address) {
    const std::lock_guard lock(api());
    const std::string what = wrong_address(address, *static_cast<const InOrder*>(context)->device);
    return what.empty() ? "nothing is there" : what;
}

void run(Device& device, catena_machine::Launch launch) {
    const std::lock_guard one_kernel(device.running);
    if (fault_of(device) != cudaSuccess) return;
    const InOrder context = {&running(), &device};
    set_order(launch, context, launch.kernel);
    launch.threads = config().threads;
    launch.reversed = config().reversed;
    launch.describe = describe;
    {
        const std::lock_guard lock(api());
        launch.regions = regions_of(device);
    }
    const Access access;
    const catena_machine::Fault wrong = run_and_count(launch);
    if (wrong.error != 0) fault(device, static_cast<cudaError_t>(wrong.error), wrong.text);
}

cudaError_t launch(const CUkern_st& from, const cudaLaunchConfig_t& config, void** args) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    if (from.code == nullptr) return note(cudaErrorInvalidDeviceFunction);
    if (!is_possible(config.gridDim, config.blockDim)) return note(cudaErrorInvalidConfiguration);
    if (config.numAttrs != 0) return note(cudaErrorNotSupported);
    const catena_machine::Kernel* kernel = nullptr;
    if (const cudaError_t error = from.code->find(from.name, &kernel); error != cudaSuccess)
        return note(error);
    const dim3 grid = config.gridDim, block = config.blockDim;
    if (kernel->shared_bytes() + config.dynamicSmemBytes > most_shared ||
        std::size_t{block.x} * block.y * block.z > kernel->maximum_threads())
        return note(cudaErrorInvalidValue);
    const std::lock_guard lock(api());
    const auto stream = find_stream(config.stream);
    if (stream == nullptr || stream->device->ordinal != current_ordinal())
        return note(cudaErrorInvalidResourceHandle);
    catena_machine::Launch made = {};
    made.kernel = kernel;
    made.grid = {grid.x, grid.y, grid.z};
    made.block = {block.x, block.y, block.z};
    made.dynamic_shared_bytes = config.dynamicSmemBytes;
    submit(*stream, [&device = *stream->device, made, code = from.code,
                     arguments = packed(*kernel, args)]() mutable {
        made.arguments = arguments.data();
        run(device, made);
    });
    return cudaSuccess;
}

// The configuration of the <<<>>> that the thread evaluates.
thread_local std::vector<cudaLaunchConfig_t> pushed;

}  // namespace

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** args) {
    return launch(find_kernel(kernel), *config, args);
}

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** args,
                             std::size_t shared_bytes, cudaStream_t stream) {
    const cudaLaunchConfig_t config = {grid, block, shared_bytes, stream, nullptr, 0};
    return cudaLaunchKernelExC(&config, kernel, args);
}

#pragma GCC visibility push(default)
extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes,
                                     CUstream_st* stream) {
    pushed.push_back({grid, block, shared_bytes, stream, nullptr, 0});
    return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes,
                                       void* stream) {
    if (pushed.empty()) return note(cudaErrorInvalidConfiguration);
    const cudaLaunchConfig_t config = pushed.back();
    pushed.pop_back();
    *grid = config.gridDim;
    *block = config.blockDim;
    *shared_bytes = config.dynamicSmemBytes;
    *static_cast<cudaStream_t*>(stream) = config.stream;
    return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** args,
                               std::size_t shared_bytes, cudaStream_t stream) {
    return cudaLaunchKernel(kernel, grid, block, args, shared_bytes, stream);
}

}  // extern "C"
#pragma GCC visibility pop
