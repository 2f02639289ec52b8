// cuda: arrays and events that processes of one machine share.
//
//     pipe << cuda::IPCArrayHandle(x).bytes();                             // here
//     const Array x = cuda::IPCArrayHandle::from_bytes(received).get();    // there: the same memory
//
// The process that made an array keeps it, or its IPCArrayHandle, for as long as any other process has
// an array from it: memory that goes away under them is an error of the program. GPUs do not outlive a
// fork: fork before, or start another program. CUDA shares whole blocks, which hold other arrays as well:
// give handles to processes that may read and write all of them.
#pragma once

#include <catena/core/stream.hpp>
#include <catena/cuda/device.hpp>

#include <string>
#include <string_view>

namespace catena::cuda {

// Whether a GPU shares with other processes, which is tried; not where there is no GPU.
bool ipc_available(const DeviceLike& device = {});

// An array's memory, shape, dtype and device, in bytes that mean the same in every process of the
// machine. Handles are cheap to copy; for any thread.
class IPCArrayHandle {
public:
    // Waits for work on the array, so that others find what it is now. Of an array that came from
    // another process, or a view of it, the handle stands for that process' memory. Throws InvalidError
    // if it is on no GPU, UnsupportedError if its backend shares nothing, DeviceError if it
    // fails to.
    explicit IPCArrayHandle(const Array& array);
    // Throws InvalidError if they are not what bytes() gave.
    static IPCArrayHandle from_bytes(std::string_view bytes);
    const std::string& bytes() const { return bytes_; }

    // The array in this process: the same memory, which is let go with its last handle. device: where
    // it is, if the GPUs have other numbers in this process; nothing: the one of the same name. Writes
    // there are for all to see once they are done: Array::synchronize() before telling others, or an
    // IPCEvent. In the process that made the array, which cannot import it, this is that array while
    // it is this very handle, and InvalidError of one from bytes. Throws DeviceError if the memory is
    // gone.
    Array get(const DeviceLike& device = {}) const;

    Shape shape() const;
    Dtype dtype() const;
    std::string device_name() const;  // in the process that made the array

private:
    explicit IPCArrayHandle(std::string bytes, Array array)
        : bytes_(std::move(bytes)), array_(std::move(array)) {}

    std::string bytes_;
    Array array_;  // kept alive, where this process made or got it
};

// An Event that other processes can wait for, and record.
class IPCEvent : public Event {
public:
    // A new one. Throws as IPCArrayHandle.
    explicit IPCEvent(const DeviceLike& device = {});
    // That of another process; device as of IPCArrayHandle::get(). Throws InvalidError if the bytes are
    // not what bytes() gave, or gave in this process.
    static IPCEvent from_bytes(std::string_view bytes, const DeviceLike& device = {});
    const std::string& bytes() const { return bytes_; }

private:
    IPCEvent(Event event, std::string bytes) : Event(std::move(event)), bytes_(std::move(bytes)) {}
    std::string bytes_;
};

}  // namespace catena::cuda
