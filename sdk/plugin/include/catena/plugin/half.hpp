// float16 and bfloat16: conversion of single elements, and loops with the CPU's conversion
// instructions. Results are rounded to nearest even; every instruction set gives the same bits.
#pragma once

#include <bit>

#include "catena/plugin/describe.hpp"
#include "catena/plugin/isa.hpp"

namespace catena::plugin {

// Branch-free, so that loops are vectorized. NaN keeps the upper bits of its payload and becomes
// quiet.
constexpr float to_float(BFloat16 h) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(h.bits) << 16);
}
constexpr float to_float(Float16 h) {
    const std::uint32_t sign = static_cast<std::uint32_t>(h.bits & 0x8000u) << 16;
    const std::uint32_t rest = static_cast<std::uint32_t>(h.bits & 0x7fffu) << 13;
    // Scaling by 2^112 moves the exponent's bias and makes subnormals normal.
    const float finite = std::bit_cast<float>(rest) * 0x1p112f;
    const std::uint32_t special = rest | (rest > 0x0f800000u ? 0x7fc00000u : 0x7f800000u);
    return std::bit_cast<float>(
        ((h.bits & 0x7c00u) == 0x7c00u ? special : std::bit_cast<std::uint32_t>(finite)) | sign);
}
constexpr BFloat16 to_bfloat16(float x) {
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
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
    result = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x3ffu) : result;
    return {static_cast<std::uint16_t>(result | sign)};
}
template <class Half>
constexpr Half to_half(float x) {
    if constexpr (std::is_same_v<Half, Float16>) return to_float16(x);
    else return to_bfloat16(x);
}

// to[0 .. n) = from[0 .. n), with the instructions of an instruction set. One of From and To is float,
// the other a half.
template <Isa isa, class From, class To>
void convert_halves(const From* from, To* to, std::int64_t n);

}  // namespace catena::plugin
