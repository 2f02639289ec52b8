// cuda: queues of work of a GPU, and copies that the caller does not wait for.
#pragma once

#include <catena/core/stream.hpp>
#include <catena/cuda/array.hpp>

namespace catena::cuda {

// The core's, for programs that name all of this by cuda::. Arrays know what they wait for: whoever
// uses the result of an asynchronous copy, in whatever stream or on the host, waits for it by itself.
using catena::Event;
using catena::Stream;
using catena::using_stream;

// An array on the host that the GPU reads and writes by itself: what asynchronous copies start from
// and end in. Uninitialised. From memory that is not pinned the copies are right, too, but the caller
// may wait. Throws as get_gpu().
Array pinned(const Shape& shape, Dtype dtype = Dtype::float32, const DeviceLike& device = {});

// As to_gpu() and to_cpu(), by a stream: without one by the current one of the current GPU, and of the
// array's. to_gpu_async() copies to the stream's device; the result of to_cpu_async() is pinned. Throw
// as get_gpu(), and DeviceError if the stream is of a device that has no part in it.
Array to_gpu_async(const Array& array, const Stream& stream = {});
Array to_cpu_async(const Array& array, const Stream& stream = {});
// As copy(), by a stream of the device that is written to, or of the array's if that is the host.
Array copy_async(const Array& array, const CopyTarget& target = {}, const Stream& stream = {});

// New arrays on the stream's device, written by the stream.
Array full(const Shape& shape, double value, Dtype dtype, const Stream& stream);
Array zeros(const Shape& shape, Dtype dtype, const Stream& stream);
Array ones(const Shape& shape, Dtype dtype, const Stream& stream);
Array full_like(const Array& array, double value, const Stream& stream);
Array zeros_like(const Array& array, const Stream& stream);
Array ones_like(const Array& array, const Stream& stream);

// The handle of a vendor's library for a GPU and this thread, bound to its current stream there: a
// cublasHandle_t of "cublas", a cudnnHandle_t of "cudnn". It is the backend's, but not the one of its
// own products. Set the modes that you need: a thread that ended may have left it as it was. Ask again
// after another stream became current. Before work on arrays is given to it: catena::use(). Throws as
// get_gpu(), and UnsupportedError if there is no such library.
void* get_handle(const char* library, const DeviceLike& device = {});
inline void* get_cublas_handle(const DeviceLike& device = {}) {
    return get_handle("cublas", device);
}

}  // namespace catena::cuda
