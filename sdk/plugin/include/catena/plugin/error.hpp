// Errors: thrown inside a plugin, turned into a status and a text where the host called.
#pragma once

#include <cstdint>
#include <exception>
#include <limits>
#include <new>
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
    // An empty text: the host has it already.
    explicit Error(catena_status status, std::string text = {})
        : status_(status), text_(std::move(text)) {}
    catena_status status() const noexcept { return status_; }
    const char* what() const noexcept override { return text_.c_str(); }

private:
    catena_status status_;
    std::string text_;
};

using Shape = std::span<const std::int64_t>;

// Of extents and sizes; at most 2^63 - 1. In infer() extents may be as large as they like: the host
// refuses what no tensor can have.
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
template <class N>
requires std::is_arithmetic_v<N> std::string text_of(N number) {
    std::string text = std::to_string(number);
    if constexpr (std::is_floating_point_v<N>) {
        text.erase(text.find_last_not_of('0') + 1);
        if (text.back() == '.') text.push_back('0');
    }
    return text;
}
inline std::string text_of(Shape shape) {
    std::string text = "(";
    for (std::size_t i = 0; i < shape.size(); ++i)
        text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    return text + (shape.size() == 1 ? ",)" : ")");
}
// "x[1, 2]": element i of a dense array called `name`; of a 0-d one the name.
inline std::string text_of_element(const char* name, std::int64_t i, Shape shape) {
    std::string place;
    for (std::size_t d = shape.size(); d-- > 0; i /= shape[d])
        place = std::to_string(i % shape[d]) + (place.empty() ? "" : ", " + place);
    return place.empty() ? name : name + ("[" + place + "]");
}
inline std::string text_of(catena_dtype dtype) {
    const char* const names[] = {"int", "uint", "float", "?", "bfloat", "?", "bool"};
    const std::string name = names[dtype.code < 7 ? dtype.code : 3];
    return dtype.code == CATENA_CODE_BOOL ? name : name + std::to_string(dtype.bits);
}

// Throws "[function] what: expected X, got Y".
template <class Expected, class Got>
[[noreturn, gnu::cold]] void fail(catena_status status, const char* function, const char* what,
                                  const Expected& expected, const Got& got) {
    throw Error(status, std::string("[") + function + "] " + what + ": expected " +
                            text_of(expected) + ", got " + text_of(got));
}

// The border to the host: nothing that body throws passes it.
template <class Body>
catena_status guarded(catena_ctx* ctx, Body&& body) noexcept {
    try {
        body();
        return CATENA_OK;
    } catch (const Error& e) {
        return e.what()[0] == '\0' ? e.status() : host().fail(ctx, e.status(), e.what());
    } catch (const std::bad_alloc&) {
        return host().fail(ctx, CATENA_E_NOMEM, "out of host memory");
    } catch (const std::exception& e) {
        return host().fail(ctx, CATENA_E_INTERNAL, e.what());
    } catch (...) {
        return host().fail(ctx, CATENA_E_INTERNAL, "an exception of unknown type");
    }
}

}  // namespace catena::plugin
