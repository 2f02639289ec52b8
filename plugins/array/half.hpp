// Conversions between dtypes, those of two bytes through float.
#pragma once

#include <catena/plugin/half.hpp>

namespace catena::plugins {

using namespace catena::plugin;

template <class T>
inline constexpr bool is_float = std::is_floating_point_v<T> || is_half_type<T>;

// A number to compute with, and back.
template <class T>
constexpr auto number(T x) {
    if constexpr (is_half_type<T>) return to_float(x);
    else return x;
}
template <class To, class From>
constexpr To convert_to(From x) {
    if constexpr (is_half_type<To>) return to_half<To>(static_cast<float>(x));
    else if constexpr (std::is_same_v<To, bool>) return x != From(0);
    else return static_cast<To>(x);
}

}  // namespace catena::plugins
