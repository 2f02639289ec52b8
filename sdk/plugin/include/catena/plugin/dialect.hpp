// The part of a dialect that devices share: types, halves, and mathematics in plain C++.
// `plugins/jit/README.md` lists what a dialect defines.
#pragma once

#include <array>
#include <cstddef>

namespace catena::plugin {

// Returns the concatenation of the texts.
template <std::size_t... n>
consteval auto joined_texts(const char (&... text)[n]) {
    std::array<char, (n + ...) - sizeof...(n) + 1> all{};
    std::size_t at = 0;
    const auto append = [&](const char* from, std::size_t size) {
        for (std::size_t i = 0; i + 1 < size; ++i) all[at++] = from[i];
    };
    (append(text, n), ...);
    return all;
}

// This text follows the head of a dialect, which defines CATENA_FN and opens the namespace
// catena_kernel. With CATENA_OWN_FLOAT16, the device's own load() and store() of float16 follow it.
inline constexpr char common_dialect[] = R"dialect(
typedef float float32;
typedef double float64;
typedef int int32;
typedef long long int64;
typedef unsigned char uint8;
struct float16 { unsigned short bits; };
struct bfloat16 { unsigned short bits; };

// Halves, rounded to nearest even; branch-free, so that loops vectorise.
CATENA_FN float as_float(unsigned bits) {
    union { unsigned from; float to; } both;
    both.from = bits;
    return both.to;
}
CATENA_FN unsigned as_bits(float x) {
    union { float from; unsigned to; } both;
    both.from = x;
    return both.to;
}
CATENA_FN float load(const bfloat16& h) { return as_float((unsigned)h.bits << 16); }
CATENA_FN void store(bfloat16& h, float x) {
    const unsigned bits = as_bits(x), rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    h.bits = (unsigned short)((x != x ? bits | 0x400000u : rounded) >> 16);
}
#if !defined(CATENA_OWN_FLOAT16)
CATENA_FN float load(const float16& h) {
    const unsigned sign = (unsigned)(h.bits & 0x8000u) << 16;
    const unsigned rest = (unsigned)(h.bits & 0x7fffu) << 13;
    const unsigned finite = as_bits(as_float(rest) * 0x1p112f);
    const unsigned special = rest | (rest > 0x0f800000u ? 0x7fc00000u : 0x7f800000u);
    return as_float(((h.bits & 0x7c00u) == 0x7c00u ? special : finite) | sign);
}
CATENA_FN void store(float16& h, float x) {
    const unsigned bits = as_bits(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    const unsigned normal = (size + 0xc8000fffu + (size >> 13 & 1u)) >> 13;
    const unsigned tiny = as_bits(as_float(size) + 0.5f) - 0x3f000000u;
    unsigned result = size < 0x38800000u ? tiny : normal;
    result = size >= 0x477ff000u ? 0x7c00u : result;
    result = size > 0x7f800000u ? 0x7e00u | (size >> 13 & 0x3ffu) : result;
    h.bits = (unsigned short)(result | sign);
}
#endif

template <bool> struct when {};
template <> struct when<true> { typedef double type; };
template <class I> struct is_whole { static constexpr bool value = (I)0.5f == (I)0; };
template <> struct is_whole<bool> { static constexpr bool value = true; };
template <class T> CATENA_FN bool isnan(T x) { return x != x; }
template <class T> CATENA_FN bool isfinite(T x) { return x - x == 0; }
template <class T> CATENA_FN bool isinf(T x) { return x == x && !(x - x == 0); }

// Mathematics by the names of C, for float and double; of an integer it is double. The head of a
// dialect defines CATENA_MATH, with the level of the CPU's vectors of the function (0: none), and
// CATENA_EXACT, of what processors have instructions for; both have a variant of two arguments.
#define CATENA_OF_WHOLE(NAME) \
    template <class I> CATENA_FN typename when<is_whole<I>::value>::type NAME(I x) { \
        return NAME((double)x); \
    }
#define CATENA_OF_ANY(NAME) \
    template <class X, class Y> CATENA_FN double NAME(X x, Y y) { \
        return NAME((double)x, (double)y); \
    }
#define CATENA_ONE(LEVEL, NAME) CATENA_MATH(LEVEL, NAME) CATENA_OF_WHOLE(NAME)
#define CATENA_TWO(LEVEL, NAME) CATENA_MATH_2(LEVEL, NAME) CATENA_OF_ANY(NAME)
#define CATENA_EXACT_ONE(NAME) CATENA_EXACT(NAME) CATENA_OF_WHOLE(NAME)
CATENA_ONE(1, exp) CATENA_ONE(1, log) CATENA_ONE(1, sin) CATENA_ONE(1, cos) CATENA_ONE(2, exp2)
CATENA_ONE(2, expm1) CATENA_ONE(2, log2) CATENA_ONE(2, log10) CATENA_ONE(2, log1p)
CATENA_ONE(2, tan) CATENA_ONE(2, asin) CATENA_ONE(2, acos) CATENA_ONE(2, atan) CATENA_ONE(2, sinh)
CATENA_ONE(2, cosh) CATENA_ONE(2, tanh) CATENA_ONE(2, asinh) CATENA_ONE(2, acosh)
CATENA_ONE(2, atanh) CATENA_ONE(2, erf) CATENA_ONE(2, erfc) CATENA_ONE(2, cbrt)
CATENA_ONE(0, tgamma) CATENA_ONE(0, lgamma)
CATENA_TWO(2, atan2) CATENA_TWO(2, hypot) CATENA_TWO(1, pow) CATENA_TWO(0, fmod)
CATENA_EXACT_ONE(sqrt) CATENA_EXACT_ONE(floor) CATENA_EXACT_ONE(ceil) CATENA_EXACT_ONE(trunc)
CATENA_EXACT_ONE(rint) CATENA_EXACT_ONE(round) CATENA_EXACT_ONE(fabs) CATENA_EXACT_2(copysign)
CATENA_OF_ANY(copysign)
CATENA_FN float pow(float x, int y) { return pow(x, (float)y); }
CATENA_FN double rsqrt(double x) { return 1 / sqrt(x); }
CATENA_FN float abs(float x) { return fabs(x); }
CATENA_FN double abs(double x) { return fabs(x); }
CATENA_FN int32 abs(int32 x) { return x < 0 ? -x : x; }
CATENA_FN int64 abs(int64 x) { return x < 0 ? -x : x; }
CATENA_FN int64 abs(long x) { return x < 0 ? -x : x; }
// If one argument is NaN, returns the other, as fmin() does.
template <class X, class Y> CATENA_FN auto min(X x, Y y) -> decltype(x + y) {
    return x < y || y != y ? x : y;
}
template <class X, class Y> CATENA_FN auto max(X x, Y y) -> decltype(x + y) {
    return x > y || y != y ? x : y;
}
template <class X, class Y> CATENA_FN auto fmin(X x, Y y) -> decltype(x + y) { return min(x, y); }
template <class X, class Y> CATENA_FN auto fmax(X x, Y y) -> decltype(x + y) { return max(x, y); }
)dialect";

}  // namespace catena::plugin
