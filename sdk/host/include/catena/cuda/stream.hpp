// cuda: streams and asynchronous copies.
#pragma once

#include <catena/cuda/array.hpp>
#include <catena/event.hpp>

namespace catena::cuda {

// These are catena's classes, also available in the namespace cuda. Arrays track pending work:
// using the result of an asynchronous copy, on any stream or on the host, waits for the copy.
using catena::Event;
using catena::Stream;
using catena::using_stream;

// A host array in pinned memory, for asynchronous copies. Uninitialized. Copies from memory that is
// not pinned are correct too, but may block the caller. Throws the errors of get_gpu().
Array pinned(const Shape& shape, Dtype dtype = Dtype::float32, const DeviceLike& device = {});

// to_gpu() and to_cpu() on a stream, by default the current stream of the current GPU, or of the
// array's GPU. to_gpu_async() copies to the stream's device; the result of to_cpu_async() is
// pinned. Throw the errors of get_gpu(), and DeviceError for a stream of an unrelated device.
Array to_gpu_async(const Array& array, const Stream& stream = {});
Array to_cpu_async(const Array& array, const Stream& stream = {});
// copy() on a stream of the destination, or of the array's device if the destination is the host.
Array copy_async(const Array& array, const CopyTarget& target = {}, const Stream& stream = {});

// New arrays on the stream's device, written by the stream.
Array full(const Shape& shape, double value, Dtype dtype, const Stream& stream);
Array full_like(const Array& array, double value, const Stream& stream);
inline Array zeros(const Shape& shape, Dtype dtype, const Stream& stream) {
    return full(shape, 0, dtype, stream);
}
inline Array ones(const Shape& shape, Dtype dtype, const Stream& stream) {
    return full(shape, 1, dtype, stream);
}
inline Array zeros_like(const Array& array, const Stream& stream) {
    return full_like(array, 0, stream);
}
inline Array ones_like(const Array& array, const Stream& stream) {
    return full_like(array, 1, stream);
}

// The handle of a vendor library for a GPU and this thread, bound to its current stream there: a
// cublasHandle_t for "cublas", a cudnnHandle_t for "cudnn". It belongs to the backend, but is not
// the handle that the backend's own products use. Set the modes that you need, because an earlier
// thread may have changed them. Ask again after switching to another stream. Call catena::use()
// before launching work on arrays with it. Throws the errors of get_gpu(), and UnsupportedError.
void* get_handle(const char* library, const DeviceLike& device = {});
inline void* get_cublas_handle(const DeviceLike& device = {}) {
    return get_handle("cublas", device);
}

}  // namespace catena::cuda
