// What is sent to other processes: a handle, and what it stands for.
#pragma once

#include <catena/core/array.hpp>
#include <catena/cuda/device.hpp>

#include <catena/abi/ext/draft/ipc.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace catena::cuda {

// Sent as it is, between programs of one machine and of one version. Unused bytes are 0.
struct IPCMessage {
    enum Kind : std::uint32_t { array = 1, event = 2 };

    char magic[8] = {'c', 'a', 't', 'e', 'n', 'a', 'I', '1'};
    std::uint32_t kind = 0;
    std::int32_t ndim = 0;
    catena_dtype dtype = {};
    std::uint32_t reserved = 0;
    std::uint64_t process = 0;  // that the memory or event is of
    std::uint64_t offset = 0;
    std::int64_t shape[CATENA_MAX_NDIM] = {};
    catena_ipc_handle handle = {};
    char device[64] = {};   // its name
    std::uint64_t sum = 0;  // of all bytes before it

    // Throws InvalidError, "[what] bytes: ...", unless they are a message of this kind.
    static IPCMessage read(std::string_view what, std::string_view bytes, Kind kind);
    std::string write() const;
    void set_device(Device value);
    Shape extents() const;
    Dtype element() const;
    // The GPU that is meant in this process; by default that of the same name.
    Device here(std::string_view what, const DeviceLike& like) const;
};

// This process, as no other that lives on this machine.
std::uint64_t this_process();
// Throws UnsupportedError if the device does not share.
const catena_ipc& ipc_table(std::string_view what, Device device);

}  // namespace catena::cuda
