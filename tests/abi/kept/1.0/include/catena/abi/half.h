/* A header of ABI 1.0, without its comments. */
#ifndef CATENA_ABI_HALF_H
#define CATENA_ABI_HALF_H
#include <stdint.h>
#include <string.h>
#if defined(__cplusplus) && __cplusplus >= 202002L
#define CATENA_HALF constexpr
CATENA_HALF float catena_float_of_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
CATENA_HALF uint32_t catena_bits_of_float(float x) { return __builtin_bit_cast(uint32_t, x); }
#else
#define CATENA_HALF static inline
CATENA_HALF float catena_float_of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
CATENA_HALF uint32_t catena_bits_of_float(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
#endif
CATENA_HALF float catena_from_bfloat16(uint16_t half) {
    return catena_float_of_bits((uint32_t)half << 16);
}
CATENA_HALF uint16_t catena_to_bfloat16(float x) {
    const uint32_t bits = catena_bits_of_float(x);
    const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    return (uint16_t)((x != x ? bits | 0x400000u : rounded) >> 16);
}
CATENA_HALF float catena_from_float16(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t rest = (uint32_t)(half & 0x7fffu) << 13;
    const float finite = catena_float_of_bits(rest) * 5.192296858534828e33f;
    const uint32_t special = rest | (rest > 0x0f800000u ? 0x7fc00000u : 0x7f800000u);
    return catena_float_of_bits(
        ((half & 0x7c00u) == 0x7c00u ? special : catena_bits_of_float(finite)) | sign);
}
CATENA_HALF uint16_t catena_to_float16(float x) {
    const uint32_t bits = catena_bits_of_float(x);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    const uint32_t normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
    const uint32_t tiny =
        catena_bits_of_float(catena_float_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t result = magnitude < 0x38800000u ? tiny : normal;
    result = magnitude >= 0x477ff000u ? 0x7c00u : result;
    result = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : result;
    return (uint16_t)(result | sign);
}
CATENA_HALF float catena_to_float_odd(double x) {
    const float nearest = (float)x;
    const double back = (double)nearest;
    if (back == x || x != x) return nearest;
    const int away = (back < 0 ? -back : back) > (x < 0 ? -x : x);
    const uint32_t bits = catena_bits_of_float(nearest);
    return catena_float_of_bits((away ? bits - 1 : bits) | 1u);
}
#undef CATENA_HALF
#endif
