// cuda: sharing arrays and events between processes on one machine.
//
//     pipe << cuda::IPCArrayHandle(x).bytes();                           // here
//     const Array x = cuda::IPCArrayHandle::from_bytes(received).get();  // there: the same memory
//
// The process that made an array must keep it, or its IPCArrayHandle, while another process uses
// it. GPUs do not survive a fork: fork earlier, or start another program. CUDA shares whole blocks,
// which may contain other arrays: give handles only to processes that may read and write them all.
#pragma once

#include <catena/cuda/device.hpp>
#include <catena/event.hpp>

namespace catena::cuda {

// Tests whether a GPU can share memory with other processes; false without a GPU.
bool ipc_available(const DeviceLike& device = {});

// The memory, shape, dtype and device of an array, as bytes that are valid in every process on the
// machine. Handles are cheap to copy and thread-safe.
class IPCArrayHandle {
public:
    // Waits for pending work on the array, so that others see its current values. For an array that
    // came from another process, or a view of it, the handle refers to that process's memory.
    // Throws InvalidError if the array is not on a GPU, UnsupportedError if its backend cannot
    // share memory, DeviceError if sharing fails.
    explicit IPCArrayHandle(const Array& array);
    // Throws InvalidError if they are not from bytes().
    static IPCArrayHandle from_bytes(std::string_view bytes);
    std::string bytes() const { return bytes_; }

    // Returns the array in this process: the same memory, released with its last handle. device:
    // its device, if the GPUs have other numbers in this process; by default the one with the same
    // name. Other processes see writes when they are complete: call Array::synchronize() before
    // notifying them, or use an IPCEvent. The process that made the array cannot import it: there
    // this handle returns that array, and a handle made from bytes throws InvalidError. Throws
    // DeviceError if the memory was freed.
    Array get(const DeviceLike& device = {}) const;

    Shape shape() const;
    Dtype dtype() const;
    std::string device_name() const;  // in the process that made the array

private:
    explicit IPCArrayHandle(std::string bytes, Array array)
        : bytes_(std::move(bytes)), array_(std::move(array)) {}

    std::string bytes_;
    Array array_;  // keeps the array alive, if this process has it
};

// An Event that other processes can wait for and record.
class IPCEvent : public Event {
public:
    // Makes a new event. Throws the errors of IPCArrayHandle.
    explicit IPCEvent(const DeviceLike& device = {});
    // Opens the event of another process; device as in IPCArrayHandle::get(). Throws InvalidError
    // if the bytes are not from bytes(), or were made in this process.
    static IPCEvent from_bytes(std::string_view bytes, const DeviceLike& device = {});
    std::string bytes() const { return bytes_; }

private:
    IPCEvent(Event event, std::string bytes) : Event(std::move(event)), bytes_(std::move(bytes)) {}
    std::string bytes_;
};

}  // namespace catena::cuda
