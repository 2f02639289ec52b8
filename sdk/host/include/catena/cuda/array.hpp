// cuda: arrays and raw memory on GPUs, copies between GPU and host, and random numbers.
#pragma once

#include <catena/link.hpp>

namespace catena::cuda {

using GPUArray = Array;  // Chainer's name; an Array knows its device

// Copies an array to a GPU. An array that is already on any GPU is returned unchanged; use copy()
// to copy between GPUs. Throws the errors of get_gpu().
Array to_gpu(const Array& array, const DeviceLike& device = {});
// Copies an array to the host. An array that is not on a GPU is returned unchanged.
Array to_cpu(const Array& array);

// Moves a link, which may be on another GPU, and returns it: see Link::to(). A temporary is
// returned by value: Mlp replica = cuda::to_gpu(deep_copy(model), 1);
template <class L>
    requires(std::derived_from<std::remove_cvref_t<L>, Link>)
L to_gpu(L&& link, const DeviceLike& device = {}) {
    link.to_gpu(device);
    return std::forward<L>(link);
}
template <class L>
    requires(std::derived_from<std::remove_cvref_t<L>, Link>)
L to_cpu(L&& link) {
    link.to_cpu();
    return std::forward<L>(link);
}

// The destination of copy(): out, which must have the array's shape and dtype; or new memory on
// out_device; or, by default, on the array's own device.
struct CopyTarget {
    Array out = {};
    DeviceLike out_device = {};
};
// Copies an array: cuda::copy(x, {.out_device = 1}). The result is out or new memory, never x.
// Throws the errors of get_gpu(), and ShapeError if out does not match.
Array copy(const Array& array, const CopyTarget& target = {});

// New arrays on the current GPU, get_device(). empty() is uninitialized.
Array empty(const Shape& shape, Dtype dtype = Dtype::float32);
Array full(const Shape& shape, double value, Dtype dtype = Dtype::float32);
Array zeros(const Shape& shape, Dtype dtype = Dtype::float32);
Array ones(const Shape& shape, Dtype dtype = Dtype::float32);
// The same with another array's shape and dtype, on its GPU, or the current GPU if it is on none.
Array empty_like(const Array& array);
Array full_like(const Array& array, double value);
inline Array zeros_like(const Array& array) { return full_like(array, 0); }
inline Array ones_like(const Array& array) { return full_like(array, 1); }

// Bytes of GPU memory from the device's cache, released with the last handle.
class Memory {
public:
    Memory() = default;
    explicit Memory(Array bytes) : bytes_(std::move(bytes)) {}

    // The address on the device, for kernels. Aligned to 64 bytes; null if empty.
    void* data() const;
    std::int64_t size() const { return bytes_ ? bytes_.nbytes() : 0; }
    Device device() const { return bytes_ ? bytes_.device() : Device(); }
    // The same memory as uint8 (size,).
    Array array() const { return bytes_; }

private:
    Array bytes_;
};

// Uninitialized. Throws the errors of get_gpu(), MemoryError, and InvalidError if nbytes < 0.
Memory mem_alloc(std::int64_t nbytes, const DeviceLike& device = {});

// Statistics of a GPU's memory cache: see MemoryStats.
MemoryStats memory_stats(const DeviceLike& device = {});
// Releases cached memory to the driver.
void release_cached(const DeviceLike& device = {});

// A device's random stream, which dropout and initializers use too; see seed(). Thread-safe.
class RandomGenerator {
public:
    explicit RandomGenerator(Device device) : device_(device) {}

    Device device() const { return device_; }
    RandomState state() const { return random_state(device_); }
    void set_state(RandomState state) const { set_random_state(device_, state); }

    // New arrays of a floating dtype on the device: from [0, 1), and from N(0, 1). The host
    // computes them; they are bit-identical for devices with the same number in their backend.
    Array gen_uniform(const Shape& shape, Dtype dtype = Dtype::float32) const;
    Array gen_normal(const Shape& shape, Dtype dtype = Dtype::float32) const;

private:
    Device device_;
};

// Throws the errors of get_gpu().
RandomGenerator get_generator(const DeviceLike& device = {});
// Restarts the stream of one GPU: with a seed as catena::seed(s) does for all devices, without one
// from a random number of the system. Throws the errors of get_gpu().
void seed(std::optional<std::uint64_t> s = {}, const DeviceLike& device = {});

}  // namespace catena::cuda
