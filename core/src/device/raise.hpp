// Throws errors with formatted texts.
#pragma once

#include <catena/core/array.hpp>
#include <catena/core/error.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

template <class E, class... Args>
[[noreturn, gnu::cold]] void raise(fmt::format_string<Args...> text, Args&&... args) {
    throw E(fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace catena
