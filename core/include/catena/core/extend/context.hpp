// catena_ctx: one call into a plugin, and its failure. raise(): throws an error with a formatted
// text, which may contain shapes and dtypes. For libraries that extend the core. Needs fmt.
#pragma once

#include <catena/core/array.hpp>
#include <catena/core/error.hpp>

#include <catena/abi/host.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>

template <>
struct fmt::formatter<catena::Shape> : formatter<std::string> {
    auto format(const catena::Shape& shape, format_context& ctx) const {
        return formatter<std::string>::format(to_string(shape), ctx);
    }
};
template <>
struct fmt::formatter<catena::Dtype> : formatter<std::string_view> {
    auto format(catena::Dtype dtype, format_context& ctx) const {
        return formatter<std::string_view>::format(name(dtype), ctx);
    }
};

namespace catena {
struct Composition;
class Variable;
}  // namespace catena

struct catena_ctx {
    catena::DeviceState* device = nullptr;
    catena_status status = CATENA_OK;
    std::uint32_t draws = 0;       // philox() calls of a kernel
    std::string error;             // text of the first failure
    std::exception_ptr exception;  // of the first failure, if the host threw it
    // Made in a gradient or compose callback.
    catena::SmallVector<catena::Variable, 8>* variables = nullptr;
    catena::Composition* composition = nullptr;  // that runs in a compose callback
    catena::RandomState drawn{};                 // random state of the first draw
    bool draws_again = false;                    // a second run of the kernel gets the same state
};

namespace catena {

template <class E, class... Args>
[[noreturn, gnu::cold]] void raise(fmt::format_string<Args...> text, Args&&... args) {
    throw E(fmt::format(text, std::forward<Args>(args)...));
}

// Writes to the log; level: CATENA_LOG_*.
void tell(std::int32_t level, std::string_view text);
// Stores the first failure of a call, and returns status. ctx may be null.
catena_status fail(catena_ctx* ctx, catena_status status, const char* text) noexcept;

// Clears a failure, so that the next kernel or a repeated call starts without one.
inline void forget_failure(catena_ctx& ctx) noexcept {
    ctx.status = CATENA_OK;
    ctx.error.clear();
    ctx.exception = nullptr;
}

// Call it after a call into a plugin. If the plugin ran out of memory, releases cached memory,
// clears the failure and returns true: the call may be repeated. Returns false during a recording.
bool make_room(catena_ctx& ctx, catena_status status) noexcept;

// Throws the host's own exception if it was the first failure, else the exception for status with
// the plugin's text. A text that does not begin with '[' gets the prefix "[where] ".
[[noreturn]] void throw_failure(const catena_ctx& ctx, catena_status status,
                                const std::string& where, const std::string& hint = {});
// Returns the refused plugin files, one per line, after a line break; "" if there are none.
std::string plugin_refusals();

}  // namespace catena
