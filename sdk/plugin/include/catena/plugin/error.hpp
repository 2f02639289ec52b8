// Errors: exceptions inside a plugin, which become a status and a message at the host's call.
#pragma once

#include <cstdint>
#include <exception>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "catena/abi.h"

namespace catena::plugin {

// The host's table, set by the entry before any other call.
inline constinit const catena_host* the_host = nullptr;
inline const catena_host& host() noexcept { return *the_host; }

class Error : public std::exception {
public:
    // An empty text means that the host already has the text.
    explicit Error(catena_status status, std::string text = {})
        : status_(status), text_(std::move(text)) {}
    catena_status status() const noexcept { return status_; }
    const char* what() const noexcept override { return text_.c_str(); }

private:
    catena_status status_;
    std::string text_;
};

// Throws an Error if a call of the host failed. The host already has the text.
inline void check_status(catena_status status) {
    if (status != CATENA_OK) [[unlikely]]
        throw Error(status);
}

using Shape = std::span<const std::int64_t>;

// The product of extents and sizes, and their sum, at most 2^63 - 1. In infer(), extents can have
// any size; the host refuses tensors that are too large.
constexpr std::int64_t times(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max()
                                                  : product;
}
constexpr std::int64_t plus(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<std::int64_t>::max() : sum;
}

constexpr std::int64_t size_of(Shape shape) {
    std::int64_t n = 1;
    for (const std::int64_t d : shape) n = times(n, d);
    return n;
}

inline std::string text_of(const char* text) { return text; }
inline std::string text_of(const std::string& text) { return text; }
inline std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(double value);
std::string text_of(Shape shape);
std::string text_of(catena_dtype dtype);
template <class N>
    requires(std::is_arithmetic_v<N>)
std::string text_of(N number) {
    if constexpr (std::is_floating_point_v<N>) return text_of(static_cast<double>(number));
    else return std::to_string(number);
}
// "x[1, 2]": element i of a dense array called `name`; for a 0-d array only the name.
std::string text_of_element(const char* name, std::int64_t i, Shape shape);

namespace detail {
[[noreturn, gnu::cold]] void fail(catena_status status, const char* function, const char* what,
                                  const std::string& expected, const std::string& got);
// Returns the status of the exception being handled, and passes its text to the host.
[[gnu::cold]] catena_status caught(catena_ctx* ctx) noexcept;
}  // namespace detail

// Throws "[function] what: expected X, got Y".
template <class Expected, class Got>
[[noreturn, gnu::cold]] void fail(catena_status status, const char* function, const char* what,
                                  const Expected& expected, const Got& got) {
    detail::fail(status, function, what, text_of(expected), text_of(got));
}

// Calls body(), and converts an exception to a status and a text for the host.
template <class Body>
catena_status guarded(catena_ctx* ctx, Body&& body) noexcept {
    try {
        body();
        return CATENA_OK;
    } catch (...) {
        return detail::caught(ctx);
    }
}

}  // namespace catena::plugin
