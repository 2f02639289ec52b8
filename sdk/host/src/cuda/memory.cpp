// Memory of a GPU: arrays of bytes.
#include <catena/core/error.hpp>
#include <catena/cuda/memory.hpp>

#include <fmt/format.h>

namespace catena::cuda {

void* Memory::data() const {
    if (!bytes_) return nullptr;
    const catena_tensor& tensor = bytes_.body()->tensor;
    return static_cast<char*>(tensor.dl.data) + tensor.dl.byte_offset;
}

Memory mem_alloc(std::int64_t nbytes, const DeviceLike& device) {
    if (nbytes < 0) {
        throw InvalidError(fmt::format("[mem_alloc] nbytes: expected 0 or more, got {}", nbytes));
    }
    return Memory(Array::empty({nbytes}, Dtype::uint8, get_gpu("mem_alloc", device)));
}

MemoryStats memory_stats(const DeviceLike& device) {
    return get_gpu("memory_stats", device).memory();
}

void release_cached(const DeviceLike& device) {
    get_gpu("release_cached", device).release_cached();
}

}  // namespace catena::cuda
