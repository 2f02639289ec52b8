// float16 and bfloat16: conversion of one element, and loops over many with the instructions that a
// CPU has for it. Numbers are rounded to nearest even; every instruction set gives the same bits.
#pragma once

#include <bit>

#include "catena/plugin/describe.hpp"
#include "catena/plugin/isa.hpp"

#if defined(CATENA_X86)
#include <immintrin.h>
#endif

namespace catena::plugin {

// Branch-free, so that loops vectorise. A NaN keeps the upper bits of its payload and is quiet.
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

namespace detail {

template <class Half>
struct HalfLoops {
    CATENA_KERNEL static void run(const Half* from, float* to, std::int64_t n) {
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) to[i] = to_float(from[i]);
    }
    CATENA_KERNEL static void run(const float* from, Half* to, std::int64_t n) {
        CATENA_LOOP
        for (std::int64_t i = 0; i < n; ++i) to[i] = to_half<Half>(from[i]);
    }
};

}  // namespace detail

// to[0 .. n) = from[0 .. n), compiled for an instruction set; one of the two is a half.
template <Isa isa, class From, class To>
inline void convert_halves(const From* from, To* to, std::int64_t n) {
    using Half = std::conditional_t<std::is_same_v<From, float>, To, From>;
    Target<isa>::template call<detail::HalfLoops<Half>, const From*, To*, std::int64_t>(from, to,
                                                                                        n);
}

#if defined(CATENA_X86)
template <>
CATENA_TARGET_V3 inline void convert_halves<Isa::x86_64_v3>(const Float16* from, float* to,
                                                            std::int64_t n) {
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(
            to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
    for (; i < n; ++i) to[i] = to_float(from[i]);
}
template <>
CATENA_TARGET_V3 inline void convert_halves<Isa::x86_64_v3>(const float* from, Float16* to,
                                                            std::int64_t n) {
    std::int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    for (; i < n; ++i) to[i] = to_float16(from[i]);
}
template <>
CATENA_TARGET_V4 inline void convert_halves<Isa::x86_64_v4>(const Float16* from, float* to,
                                                            std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += 16) {
        const auto mask = static_cast<__mmask16>(n - i < 16 ? (1u << (n - i)) - 1 : 0xffffu);
        _mm512_mask_storeu_ps(
            to + i, mask, _mm512_maskz_cvtph_ps(mask, _mm256_maskz_loadu_epi16(mask, from + i)));
    }
}
template <>
CATENA_TARGET_V4 inline void convert_halves<Isa::x86_64_v4>(const float* from, Float16* to,
                                                            std::int64_t n) {
    for (std::int64_t i = 0; i < n; i += 16) {
        const auto mask = static_cast<__mmask16>(n - i < 16 ? (1u << (n - i)) - 1 : 0xffffu);
        _mm256_mask_storeu_epi16(to + i, mask,
                                 _mm512_maskz_cvtps_ph(mask, _mm512_maskz_loadu_ps(mask, from + i),
                                                       _MM_FROUND_TO_NEAREST_INT));
    }
}
#endif

}  // namespace catena::plugin
