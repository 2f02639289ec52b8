// One value in many places: 16 bytes at a time where the address allows it.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

#include "memory.hpp"

namespace catena_cuda {
namespace {

constexpr unsigned block = 256;

struct alignas(16) Pack {
    unsigned char bytes[16];
};

template <class T>
__global__ void __launch_bounds__(block)
    fill_kernel(T* dst, Pack pack, uint64_t head, uint64_t packs, uint64_t tail) {
    const T value = *reinterpret_cast<const T*>(pack.bytes);
    const uint64_t thread = static_cast<uint64_t>(blockIdx.x) * block + threadIdx.x;
    const uint64_t threads = static_cast<uint64_t>(gridDim.x) * block;
    auto* const aligned = reinterpret_cast<Pack*>(dst + head);
    for (uint64_t i = thread; i < packs; i += threads) aligned[i] = pack;
    // Fewer than a pack at either end.
    if (thread < head) dst[thread] = value;
    T* const rest = reinterpret_cast<T*>(aligned + packs);
    if (thread < tail) rest[thread] = value;
}

template <class T>
cudaError_t launch(cudaStream_t stream, int processors, void* dst, const void* value, uint64_t n) {
    constexpr uint64_t in_pack = sizeof(Pack) / sizeof(T);
    Pack pack;
    for (uint64_t i = 0; i < in_pack; ++i)
        std::memcpy(pack.bytes + i * sizeof(T), value, sizeof(T));
    const uint64_t misplaced = reinterpret_cast<uintptr_t>(dst) % sizeof(Pack) / sizeof(T);
    const uint64_t head = std::min(n, misplaced == 0 ? 0 : in_pack - misplaced);
    const uint64_t packs = (n - head) / in_pack;
    const uint64_t tail = (n - head) % in_pack;
    const uint64_t wanted = (packs + block - 1) / block;
    const uint64_t most = static_cast<uint64_t>(processors) * 8;  // as many as run at once
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(std::clamp<uint64_t>(wanted, 1, most)));
    config.blockDim = dim3(block);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, fill_kernel<T>, static_cast<T*>(dst), pack, head, packs,
                              tail);
}

}  // namespace

cudaError_t launch_fill(cudaStream_t stream, int processors, void* dst, const void* value,
                        uint32_t value_bytes, uint64_t n) {
    switch (value_bytes) {
        case 1: return launch<uint8_t>(stream, processors, dst, value, n);
        case 2: return launch<uint16_t>(stream, processors, dst, value, n);
        case 4: return launch<uint32_t>(stream, processors, dst, value, n);
        case 8: return launch<uint64_t>(stream, processors, dst, value, n);
        default: return launch<Pack>(stream, processors, dst, value, n);
    }
}

}  // namespace catena_cuda
