// Work on the CPU that counts as work of a device.
#include "emulator/work.hpp"

#include <algorithm>
#include <utility>

#include "counts.hpp"
#include "device.hpp"
#include "stream.hpp"

namespace catena_emulator {
namespace {

using catena_machine::Byte;

// Returns why a device may not access a range; empty if it may.
std::string wrong_range(const Range& range, const Device& device) {
    if (range.bytes == 0) return {};
    std::string why = wrong_address(reinterpret_cast<std::uintptr_t>(range.data), device);
    if (!why.empty()) return why;
    const Place::Kind kind = place_of(range.data, range.bytes).kind;
    if (kind == Place::Kind::device || kind == Place::Kind::pinned) return {};
    return "expected " + std::to_string(range.bytes) + " bytes of device memory, got less";
}

void run(Device& device, const std::vector<Range>& ranges, const std::function<void()>& body,
         const char* name) {
    if (fault_of(device) != cudaSuccess) return;
    count(name);
    for (const Range& range : ranges)
        if (const std::string race = touch(range.data, range.bytes, range.is_written);
            !race.empty())
            return fault(device, cudaErrorLaunchFailure, "a library's kernel: " + race);
    {
        const std::lock_guard lock(api());
        for (const Range& range : ranges) {
            if (const std::string why = wrong_range(range, device); !why.empty())
                return fault(device, cudaErrorIllegalAddress, "a library's kernel: " + why);
            if (Byte* const states = states_of(range.data); states != nullptr && range.is_written)
                std::fill_n(states, range.bytes, Byte::written);
        }
    }
    const Access access;
    body();
}

}  // namespace

cudaError_t work(cudaStream_t handle, std::vector<Range> ranges, std::function<void()> body,
                 const char* name) {
    if (const cudaError_t error = enter(); error != cudaSuccess) return error;
    const std::lock_guard lock(api());
    const auto stream = find_stream(handle);
    if (stream == nullptr || stream->device->ordinal != current_ordinal())
        return note(cudaErrorInvalidResourceHandle);
    submit(*stream, [&device = *stream->device, ranges = std::move(ranges), body = std::move(body),
                     name] { run(device, ranges, body, name); });
    return cudaSuccess;
}

}  // namespace catena_emulator
