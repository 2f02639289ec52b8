// Arrays, memory, asynchronous copies and random numbers on GPUs; handles of vendor libraries.
#include "../support.hpp"

#include <catena/abi/ext/draft/vendor.h>
#include <catena/cuda/stream.hpp>
#include <catena/random.hpp>

#include <random>

namespace catena::cuda {
namespace {

const Array& need(const char* what, const Array& array) {
    if (array) return array;
    fail<InvalidError>("[{}] array: expected an array, got an empty handle", what);
}

Device home_or_current(const char* what, const Array& array) {
    const Device home = need(what, array).device();
    return is_gpu(home) ? home : get_gpu(what);
}

Stream or_current(const Stream& stream, Device device) {
    return stream ? stream : Stream::current(device);
}

Device device_of(const char* what, const Stream& stream) {
    return stream ? get_gpu(what, stream.device()) : get_gpu(what);
}

template <class Copy>
Array by(const Stream& stream, const Copy& copy) {
    const using_stream scope(stream);
    return copy();
}

}  // namespace

Array to_gpu(const Array& array, const DeviceLike& device) {
    if (is_gpu(need("to_gpu", array).device())) return array;
    return array.to(get_gpu("to_gpu", device));
}

Array to_cpu(const Array& array) {
    return is_gpu(need("to_cpu", array).device()) ? array.to(host()) : array;
}

Array copy(const Array& array, const CopyTarget& target) {
    const Device from = need("copy", array).device();
    if (target.out) {
        target.out.copy_from(array);
        return target.out;
    }
    const Device device =
        target.out_device.is_nothing() ? from : get_gpu("copy", target.out_device);
    return device == from ? array.copy() : array.to(device);
}

Array empty(const Shape& shape, Dtype dtype) {
    return Array::empty(shape, dtype, get_gpu("empty"));
}
Array full(const Shape& shape, double value, Dtype dtype) {
    return Array::full(shape, value, dtype, get_gpu("full"));
}
Array zeros(const Shape& shape, Dtype dtype) {
    return Array::zeros(shape, dtype, get_gpu("zeros"));
}
Array ones(const Shape& shape, Dtype dtype) { return Array::ones(shape, dtype, get_gpu("ones")); }

Array empty_like(const Array& array) {
    const Device device = home_or_current("empty_like", array);
    return Array::empty(array.shape(), array.dtype(), device);
}
Array full_like(const Array& array, double value) {
    const Device device = home_or_current("full_like", array);
    return Array::full(array.shape(), value, array.dtype(), device);
}

Array pinned(const Shape& shape, Dtype dtype, const DeviceLike& device) {
    return Array::pinned(shape, dtype, get_gpu("pinned", device));
}

Array to_gpu_async(const Array& array, const Stream& stream) {
    if (is_gpu(need("to_gpu_async", array).device())) return array;
    const Device device = device_of("to_gpu_async", stream);
    return array.to(device, or_current(stream, device));
}

Array to_cpu_async(const Array& array, const Stream& stream) {
    const Device from = need("to_cpu_async", array).device();
    return is_gpu(from) ? array.to(host(), or_current(stream, from)) : array;
}

Array copy_async(const Array& array, const CopyTarget& target, const Stream& stream) {
    const Device from = need("copy_async", array).device();
    Device to = target.out ? target.out.device() : from;
    if (!target.out && !target.out_device.is_nothing())
        to = get_gpu("copy_async", target.out_device);
    const Stream queue = or_current(stream, is_gpu(to) ? to : from);
    if (queue.device() != to && (queue.device() != from || is_gpu(to)))
        fail<DeviceError>("[copy_async] stream: expected one of {}, got one of {}", to.name(),
                          queue.device().name());
    return by(queue, [&] {
        if (target.out) {
            target.out.copy_from(array);
            return target.out;
        }
        return to == from ? array.copy() : array.to(to, queue);
    });
}

Array full(const Shape& shape, double value, Dtype dtype, const Stream& stream) {
    const Device device = device_of("full", stream);
    return by(or_current(stream, device), [&] { return Array::full(shape, value, dtype, device); });
}
Array full_like(const Array& array, double value, const Stream& stream) {
    return full(need("full_like", array).shape(), value, array.dtype(), stream);
}

void* get_handle(const char* library, const DeviceLike& like) {
    const Device device = get_gpu("get_handle", like);
    const auto* vendor =
        static_cast<const catena_vendor*>(backend_extension(device, CATENA_VENDOR_DRAFT_1));
    if (!vendor)
        fail<UnsupportedError>("[get_handle] {}: expected a device with vendor libraries, got {}",
                               library, device.name());
    void* handle = nullptr;
    const Stream stream = Stream::current(device);
    call_backend(device, "get_handle", [&](catena_ctx* ctx, void* dev) {
        return vendor->handle(ctx, dev, stream.native(), library, &handle);
    });
    return handle;
}

void* Memory::data() const { return bytes_ ? address_of(bytes_) : nullptr; }

Memory mem_alloc(std::int64_t nbytes, const DeviceLike& device) {
    if (nbytes < 0) fail<InvalidError>("[mem_alloc] nbytes: expected 0 or more, got {}", nbytes);
    return Memory(Array::empty({nbytes}, Dtype::uint8, get_gpu("mem_alloc", device)));
}

MemoryStats memory_stats(const DeviceLike& device) {
    return get_gpu("memory_stats", device).memory();
}

void release_cached(const DeviceLike& device) {
    get_gpu("release_cached", device).release_cached();
}

Array RandomGenerator::gen_uniform(const Shape& shape, Dtype dtype) const {
    return random::uniform(shape, 0, 1, dtype, device_);
}

Array RandomGenerator::gen_normal(const Shape& shape, Dtype dtype) const {
    return random::normal(shape, 0, 1, dtype, device_);
}

RandomGenerator get_generator(const DeviceLike& device) {
    return RandomGenerator(get_gpu("get_generator", device));
}

void seed(std::optional<std::uint64_t> s, const DeviceLike& device) {
    if (!s) {
        std::random_device draw;
        s = std::uint64_t{draw()} << 32 | draw();
    }
    catena::seed(*s, get_gpu("seed", device));
}

}  // namespace catena::cuda
