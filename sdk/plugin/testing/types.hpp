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

// The types of all dtypes that arrays have.
using EveryType =
    plugin::Row<float, double, Float16, BFloat16, std::int8_t, std::int16_t, std::int32_t,
                std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool>;
// Calls body(T()) for the C++ type of a dtype.
template <class Body>
auto with_type(catena_dtype dtype, const Body& body) {
    const int type = plugin::index_in(EveryType(), dtype);
    if (type < 0) throw std::logic_error("an array of " + plugin::text_of(dtype));
    if constexpr (std::is_void_v<decltype(body(float()))>) {
        plugin::with_type(EveryType(), type, body);
    } else {
        decltype(body(float())) result{};
        plugin::with_type(EveryType(), type, [&](auto t) { result = body(t); });
        return result;
    }
}

}  // namespace catena::testing::detail
