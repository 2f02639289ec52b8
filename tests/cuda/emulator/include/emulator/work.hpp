// Work on the CPU that counts as work of a device, for replacements of NVIDIA's libraries.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace catena_emulator {

struct Range {
    const void* data;
    std::size_t bytes;
    bool is_written = false;  // by the work
};

// Submits work to a stream, or records it, as a kernel. When it runs, the ranges must be memory that the
// stream's device may access; else the device has a fault, and body is not called. It is counted under
// the name, which is not copied.
[[gnu::visibility("default")]] cudaError_t work(cudaStream_t stream, std::vector<Range> ranges,
                                                std::function<void()> body,
                                                const char* name = "a library's kernel");

}  // namespace catena_emulator
