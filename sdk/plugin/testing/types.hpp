// The C++ type of a dtype, and numbers of it as double.
#pragma once

#include <stdexcept>
#include <type_traits>

#include "catena/plugin/error.hpp"
#include "catena/plugin/half.hpp"
#include "catena/testing/array.hpp"

namespace catena::testing::detail {

template <class T>
double to_double(T value) {
    if constexpr (std::is_class_v<T>) return plugin::to_float(value);
    else return static_cast<double>(value);
}
template <class T>
T from_double(double value) {
    if constexpr (std::is_class_v<T>) return plugin::to_half<T>(static_cast<float>(value));
    else if constexpr (std::is_same_v<T, bool>) return value != 0;
    else return static_cast<T>(value);
}

template <class Body, class... T>
auto with_one_of(catena_dtype dtype, const Body& body) {
    using Result = decltype(body(float()));
    if constexpr (std::is_void_v<Result>) {
        if (!((plugin::same(dtype, dtype_of<T>()) && (body(T()), true)) || ...))
            throw std::logic_error("an array of " + plugin::text_of(dtype));
    } else {
        Result result{};
        if (!((plugin::same(dtype, dtype_of<T>()) && (result = body(T()), true)) || ...))
            throw std::logic_error("an array of " + plugin::text_of(dtype));
        return result;
    }
}
// body(T()) for the C++ type of a dtype.
template <class Body>
auto with_type(catena_dtype dtype, const Body& body) {
    return with_one_of<Body, float, double, Float16, BFloat16, std::int8_t, std::int16_t,
                       std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
                       std::uint64_t, bool>(dtype, body);
}

}  // namespace catena::testing::detail
