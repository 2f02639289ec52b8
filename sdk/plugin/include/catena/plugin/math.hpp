// Elementary functions for formulas: branch-free scalars that compilers turn into vector code, and
// CUDA's own on a GPU. Errors stay under about 2 units in the last place of float and 1e-15
// relative of double; infinities, NaN, overflow and subnormals come out as in IEEE 754.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

#include "catena/plugin/isa.hpp"

namespace catena::plugin::math {

namespace detail {

// Constants of the two formats. Polynomials are minimax fits over the reduced range.
template <class T>
struct Format;

template <>
struct Format<float> {
    using Bits = std::uint32_t;
    static constexpr int mantissa = 23;
    static constexpr Bits bias = 127;
    static constexpr float round = 0x1.8p23f;  // adding it rounds to an integer, in the low bits
    static constexpr float exp_min = -104.0f, exp_max = 89.0f, tanh_max = 10.0f;
    static constexpr float log2_e = 1.44269504f, ln2_high = 0.693359375f;
    static constexpr float ln2_low = -2.12194440e-4f;
    static constexpr float exp[] = {0.50000000808407f,  0.16666666756376f,  0.041666240563682f,
                                    0.008333286028534f, 0.001394859149111f, 0.000199075722262f};
    static constexpr float log[] = {0.33333331698100f,  -0.25000820889341f, 0.20001227288579f,
                                    -0.16623361946167f, 0.14201754133706f,  -0.13160139596952f,
                                    0.12761579527438f,  -0.07634599484983f};
};

template <>
struct Format<double> {
    using Bits = std::uint64_t;
    static constexpr int mantissa = 52;
    static constexpr Bits bias = 1023;
    static constexpr double round = 0x1.8p52;
    static constexpr double exp_min = -746.0, exp_max = 710.0, tanh_max = 22.0;
    static constexpr double log2_e = 1.4426950408889634074, ln2_high = 0x1.62e42fee00000p-1;
    static constexpr double ln2_low = 1.9082149292705877000e-10;
    static constexpr double exp[] = {0.50000000000000102245,   0.1666666666666667453,
                                     0.04166666666652199074,   0.0083333333333222072959,
                                     0.0013888888947820891412, 0.00019841269886590999283,
                                     2.4801487326012342296e-5, 2.755724233668041298e-6,
                                     2.7632655759330084868e-7, 2.5110049895839679563e-8};
    static constexpr double log[] = {0.66666666666666663368, 0.40000000000004810056,
                                     0.28571428569358908417, 0.22222222625642952808,
                                     0.18181776199180908668, 0.15387104843728196171,
                                     0.13249168730354864123, 0.13264310048219660263};
};

template <class T, std::size_t n>
CATENA_FN T polynomial(const T (&c)[n], T x) {
    T sum = c[n - 1];
    for (std::size_t i = n - 1; i-- > 0;) sum = sum * x + c[i];
    return sum;
}

// 2^n for an integer n of the exponent's range.
template <class T>
CATENA_FN T power_of_two(T n) {
    using F = Format<T>;
    using Bits = typename F::Bits;
    return std::bit_cast<T>((std::bit_cast<Bits>(n + F::round) + F::bias) << F::mantissa);
}

template <class T>
struct Reduced {
    T n;      // x = n ln 2 + r
    T expm1;  // e^r - 1
};
template <class T>
CATENA_FN Reduced<T> reduce(T x) {
    using F = Format<T>;
    const T n = (x * F::log2_e + F::round) - F::round;
    const T r = (x - n * F::ln2_high) - n * F::ln2_low;
    return {n, r + r * r * polynomial(F::exp, r)};
}

}  // namespace detail

template <std::floating_point T>
CATENA_FN T where(bool condition, T yes, T no) {
    return condition ? yes : no;
}
template <std::floating_point T>
CATENA_FN T where(T condition, T yes, T no) {
    return condition != T(0) ? yes : no;
}
template <std::floating_point T>
CATENA_FN bool isnan(T x) {
    return x != x;
}
template <std::floating_point T>
CATENA_FN T abs(T x) {
    return std::bit_cast<T>(std::bit_cast<typename detail::Format<T>::Bits>(x) &
                            (~typename detail::Format<T>::Bits{0} >> 1));
}
// As in NumPy, a NaN on either side comes out.
template <std::floating_point T>
CATENA_FN T max(T a, T b) {
    return a > b || a != a ? a : b;
}
template <std::floating_point T>
CATENA_FN T min(T a, T b) {
    return a < b || a != a ? a : b;
}

template <std::floating_point T>
CATENA_FN T sqrt(T x) {
#if defined(__CUDA_ARCH__)
    return ::sqrt(x);
#else
    if constexpr (sizeof(T) == 4) return __builtin_sqrtf(x);
    else return __builtin_sqrt(x);
#endif
}

template <std::floating_point T>
CATENA_FN T exp(T x) {
#if defined(__CUDA_ARCH__)
    return ::exp(x);
#else
    using F = detail::Format<T>;
    x = x > F::exp_max ? F::exp_max : x;
    x = x < F::exp_min ? F::exp_min : x;
    const auto [n, expm1] = detail::reduce(x);
    // Two factors: 2^n alone does not exist at both ends of the range.
    const T half = (n * T(0.5) + F::round) - F::round;
    return (T(1) + expm1) * detail::power_of_two(half) * detail::power_of_two(n - half);
#endif
}

template <std::floating_point T>
CATENA_FN T log(T x) {
#if defined(__CUDA_ARCH__)
    return ::log(x);
#else
    using F = detail::Format<T>;
    using Bits = typename F::Bits;
    constexpr Bits root_half = std::bit_cast<Bits>(T(0.70710678118654752440L));
    constexpr T up = sizeof(T) == 4 ? T(0x1p25) : T(0x1p54);
    constexpr T integer = sizeof(T) == 4 ? T(0x1p23) : T(0x1p52);
    const bool tiny = x < std::numeric_limits<T>::min();
    const Bits bits = std::bit_cast<Bits>(tiny ? x * up : x) - root_half;
    // x = 2^e m with m in [sqrt(1/2), sqrt(2)).
    const Bits exponent = (bits + (F::bias << F::mantissa)) >> F::mantissa;
    const T e = std::bit_cast<T>(exponent | std::bit_cast<Bits>(integer)) - (integer + T(F::bias)) -
                (tiny ? T(sizeof(T) == 4 ? 25 : 54) : T(0));
    const T m = std::bit_cast<T>((bits & ((Bits{1} << F::mantissa) - 1)) + root_half);
    const T f = m - T(1);
    const T half = T(0.5) * f * f;
    T y = 0;
    if constexpr (sizeof(T) == 4) {
        y = f * f * f * detail::polynomial(F::log, f);
        y = e * F::ln2_high + (f - (half - (y + e * F::ln2_low)));
    } else {
        const T s = f / (T(2) + f);
        const T z = s * s;
        y = s * (half + z * detail::polynomial(F::log, z));
        y = e * F::ln2_high - ((half - (y + e * F::ln2_low)) - f);
    }
    y = x < std::numeric_limits<T>::infinity() ? y : x;  // infinity and NaN
    y = x < T(0) ? std::numeric_limits<T>::quiet_NaN() : y;
    return x == T(0) ? -std::numeric_limits<T>::infinity() : y;
#endif
}

template <std::floating_point T>
CATENA_FN T tanh(T x) {
#if defined(__CUDA_ARCH__)
    return ::tanh(x);
#else
    using F = detail::Format<T>;
    T a = abs(x);
    a = a > F::tanh_max ? F::tanh_max : a;
    const auto [n, expm1] = detail::reduce(a + a);
    const T scale = detail::power_of_two(n);
    const T t = scale * expm1 + (scale - T(1));  // e^(2|x|) - 1
    constexpr auto sign = ~(~typename F::Bits{0} >> 1);
    return std::bit_cast<T>(std::bit_cast<typename F::Bits>(t / (t + T(2))) |
                            (std::bit_cast<typename F::Bits>(x) & sign));
#endif
}

template <std::floating_point T>
CATENA_FN T sigmoid(T x) {
    const T e = exp(-abs(x));  // never overflows
    return (x >= T(0) ? T(1) : e) / (T(1) + e);
}

// Not vectorised: the C library's, right in every special case.
template <std::floating_point T>
CATENA_FN T pow(T x, T y) {
#if defined(__CUDA_ARCH__)
    return ::pow(x, y);
#else
    return std::pow(x, y);
#endif
}

}  // namespace catena::plugin::math
