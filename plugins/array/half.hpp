// Conversions between dtypes, those of two bytes through float. Branch-free, so that loops vectorise.
#pragma once

#include <catena/plugin/describe.hpp>

#include <bit>
#include <cstdint>

namespace catena::plugins {

using plugin::BFloat16;
using plugin::Float16;

constexpr float to_float(BFloat16 h) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(h.bits) << 16);
}
constexpr float to_float(Float16 h) {
    const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000u) << 16;
    const std::uint32_t rest = static_cast<std::uint32_t>(h.bits & 0x7fffu) << 13;
    // Scaling by 2^112 moves the exponent's bias and makes subnormals normal.
    const float finite = std::bit_cast<float>(rest) * 0x1p112f;
    const std::uint32_t special = rest | 0x7f800000u;  // infinity and NaN
    return std::bit_cast<float>(
        ((h.bits & 0x7c00u) == 0x7c00u ? special : std::bit_cast<std::uint32_t>(finite)) | sign);
}
constexpr BFloat16 to_bfloat16(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);  // to nearest even
    return {static_cast<std::uint16_t>((x != x ? bits | 0x400000u : rounded) >> 16)};
}
constexpr Float16 to_float16(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t sign = bits >> 16 & 0x8000u;
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    // Normal: rebias and round to nearest even. Subnormal: adding 1/2 lets the addition round.
    const std::uint32_t normal = (magnitude + 0xc8000fffu + (magnitude >> 13 & 1u)) >> 13;
    const std::uint32_t tiny =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    std::uint32_t result = magnitude < 0x38800000u ? tiny : normal;
    result = magnitude >= 0x477ff000u ? 0x7c00u : result;  // 65520 and above
    result = magnitude > 0x7f800000u ? 0x7e00u : result;
    return {static_cast<std::uint16_t>(result | sign)};
}

template <class T>
inline constexpr bool is_float =
    std::is_floating_point_v<T> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// A number to compute with, and back.
template <class T>
constexpr auto number(T x) {
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) return to_float(x);
    else return x;
}
template <class To, class From>
constexpr To convert_to(From x) {
    if constexpr (std::is_same_v<To, Float16>) return to_float16(static_cast<float>(x));
    else if constexpr (std::is_same_v<To, BFloat16>) return to_bfloat16(static_cast<float>(x));
    else if constexpr (std::is_same_v<To, bool>) return x != From(0);
    else return static_cast<To>(x);
}

}  // namespace catena::plugins
