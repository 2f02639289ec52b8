// catena_ctx: one call into a plugin, its device and what went wrong.
#pragma once

#include "device/device_state.hpp"

#include <catena/abi/host.h>
#include <catena/core/config.hpp>
#include <catena/core/variable.hpp>

#include <exception>
#include <memory>
#include <string>

struct catena_ctx {
    catena::DeviceState* device = nullptr;
    catena_status status = CATENA_OK;
    std::uint32_t draws = 0;       // of a kernel, by philox()
    std::string error;             // the first failure's text
    std::exception_ptr exception;  // of the first failure, if it is the host's own
    catena::SmallVector<catena::Variable, 8>* variables = nullptr;  // made in a gradient callback
    catena::RandomState drawn{};  // where the first of the draws starts
    bool draws_again = false;     // a second run of the kernel gets the same
};

namespace catena {

// Of this thread while a call runs on another device than its own: its own, which numbers are drawn
// from.
inline thread_local DeviceState* draws_from = nullptr;

// The values of config(), for reading. Allocates nothing: a thread without a copy reads global_config().
const Config& read_config() noexcept;
// A copy with now.named. Calls of a thread that were made with the same settings share it.
std::shared_ptr<const Config> keep_named(const Config& now);

// The table that every plugin gets.
const catena_host& host_table() noexcept;

// Writes to the log; level: CATENA_LOG_*.
inline void tell(std::int32_t level, const std::string& text) {
    host_table().log(nullptr, level, text.c_str());
}

// A kernel that declines leaves no failure to the next one.
inline void forget_failure(catena_ctx& ctx) noexcept {
    ctx.status = CATENA_OK;
    ctx.error.clear();
    ctx.exception = nullptr;
}

// After a call into a plugin that gave the status: true if it found no memory, and what the device has
// cached was given back, so that the same call may go now; its failure is forgotten. Not while work of
// the device is recorded.
bool make_room(catena_ctx& ctx, catena_status status) noexcept;

// Throws the host's own exception if it was the first failure; else the one of status with the
// plugin's text, "[where] " put before it if it is not there.
[[noreturn]] void throw_failure(const catena_ctx& ctx, catena_status status,
                                const std::string& where, const std::string& hint = {});

// Calls the backend; throws its error with the device's name.
template <class Call>
void on_backend(DeviceState& device, const Call& call, const char* hint = "") {
    catena_ctx ctx;
    ctx.device = &device;
    const catena_status status = call(&ctx);
    if (status != CATENA_OK) throw_failure(ctx, status, device.name, hint);
}

template <class Call>
void Queue::give(const Call& call) {
    on_backend(device, call);
    advance();
}

}  // namespace catena
