// Copies and fills by a stream of the caller's choice; handles of vendors' libraries.
#include <catena/core/backend.hpp>
#include <catena/core/error.hpp>
#include <catena/cuda/stream.hpp>

#include <catena/abi/ext/draft/vendor.h>
#include <fmt/format.h>

namespace catena::cuda {
namespace {

const Array& need(const char* what, const Array& array) {
    if (array) return array;
    throw InvalidError(fmt::format("[{}] array: expected an array, got an empty handle", what));
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
    if (queue.device() != to && (queue.device() != from || is_gpu(to))) {
        throw DeviceError(fmt::format("[copy_async] stream: expected one of {}, got one of {}",
                                      to.name(), queue.device().name()));
    }
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
Array zeros(const Shape& shape, Dtype dtype, const Stream& stream) {
    return full(shape, 0, dtype, stream);
}
Array ones(const Shape& shape, Dtype dtype, const Stream& stream) {
    return full(shape, 1, dtype, stream);
}
Array full_like(const Array& array, double value, const Stream& stream) {
    return full(need("full_like", array).shape(), value, array.dtype(), stream);
}
Array zeros_like(const Array& array, const Stream& stream) { return full_like(array, 0, stream); }
Array ones_like(const Array& array, const Stream& stream) { return full_like(array, 1, stream); }

void* get_handle(const char* library, const DeviceLike& like) {
    const Device device = get_gpu("get_handle", like);
    const auto* vendor =
        static_cast<const catena_vendor*>(backend_extension(device, CATENA_VENDOR_DRAFT_1));
    if (!vendor) {
        throw UnsupportedError(
            fmt::format("[get_handle] {}: expected a device with vendor libraries, got {}", library,
                        device.name()));
    }
    void* handle = nullptr;
    const Stream stream = Stream::current(device);
    call_backend(device, "get_handle", [&](catena_ctx* ctx, void* dev) {
        return vendor->handle(ctx, dev, stream.native(), library, &handle);
    });
    return handle;
}

}  // namespace catena::cuda
