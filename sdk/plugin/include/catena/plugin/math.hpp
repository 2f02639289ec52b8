// Elementary functions for formulas: branch-free scalar functions that compilers vectorize, and
// CUDA's own on a GPU. Errors are below about 2 units in the last place for float and 1e-15
// relative for double. Infinities, NaN, overflow and subnormals follow IEEE 754, except for
// sigmoid's lowest subnormals, which are 0.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>

#include "catena/plugin/isa.hpp"

namespace catena::plugin::math {

namespace detail {

// Constants of the two formats. The polynomials are minimax fits over the reduced range.
template <class T>
struct Format;

template <>
struct Format<float> {
    using Bits = std::uint32_t;
    static constexpr int mantissa = 23;
    static constexpr Bits bias = 127;
    static constexpr float round = 0x1.8p23f;  // adding it rounds to an integer, in the low bits
    // e^x is 0 below exp_min, subnormal below exp_normal, infinite above exp_max.
    static constexpr float exp_min = -104.0f, exp_normal = -87.3f, exp_max = 0x1.62e42ep6f;
    // For larger x, sigmoid(-x) is 0 and tanh(x) is 1.
    static constexpr float sigmoid_max = 88.0f, tanh_max = 10.0f;
    static constexpr Bits lift = 64;  // added to an exponent so that a subnormal result is normal
    static constexpr float lowered = 0x1p-64f;
    static constexpr float log2_e = 1.44269504f, ln2_high = 0.693359375f;
    static constexpr float ln2_low = -2.12194440e-4f;
    static constexpr float exp[] = {0.49999993346138f, 0.16666519129744f, 0.04166840579843f,
                                    0.00836889871661f, 0.00138142177549f};
    static constexpr float log[] = {0.33333331698100f,  -0.25000820889341f, 0.20001227288579f,
                                    -0.16623361946167f, 0.14201754133706f,  -0.13160139596952f,
                                    0.12761579527438f,  -0.07634599484983f};
    // erf(x) / x for x^2 in [0, 9/16].
    static constexpr float erf[] = {1.128379165f,    -0.3761261876f,  0.1128337657f,
                                    -0.02683462465f, 0.005114345831f, -0.0006749515886f};
    // P(X < -a) e^(a^2 / 2) / t for a standard normal X and t = tail_k / (a + tail_k), in
    // tail_scale * t - tail_shift. At tail_max, 2^n in e^(-a^2 / 2) = e^r 2^n is the first that is
    // 0.
    static constexpr float tail_max = 13.265f, tail_k = 3;
    static constexpr float tail_scale = 2.4521477016f, tail_shift = 1.4521477016f;
    static constexpr float tail[] = {0.2770339369f,    0.1627625989f,    0.05623580397f,
                                     0.006753238557f,  -0.002380874637f, -0.0006234713894f,
                                     0.0001957622996f, 4.080855594e-5f,  -1.778345249e-5f};
};

template <>
struct Format<double> {
    using Bits = std::uint64_t;
    static constexpr int mantissa = 52;
    static constexpr Bits bias = 1023;
    static constexpr double round = 0x1.8p52;
    static constexpr double exp_min = -746.0, exp_normal = -708.3, exp_max = 0x1.62e42fefa39efp9;
    static constexpr double sigmoid_max = 709.0, tanh_max = 22.0;
    static constexpr Bits lift = 128;
    static constexpr double lowered = 0x1p-128;
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
    static constexpr double erf[] = {
        1.128379167095512573,      -0.37612638903183714937,     0.11283791670952480784,
        -0.026866170644402478339,  0.0052239776151222263943,    -0.00085483261690849257715,
        0.00012055288776921972344, -0.000014924176629226471378, 1.6430388093768139178e-6,
        -1.593759900485655345e-7,  1.1463754268405727378e-8};
    static constexpr double tail_max = 37.66, tail_k = 5;
    static constexpr double tail_scale = 2.2652519893899204244, tail_shift = 1.2652519893899204244;
    static constexpr double tail[] = {
        0.17088681208850912978,      0.14045302127648420617,    0.096690314825988984063,
        0.055195482360253705275,     0.02551173379039358008,    0.0090674189916293376077,
        0.0021663114970718072897,    0.0001646832722866722244,  -0.00010295517042235841589,
        -0.000037272361638598910411, 1.0073505096669951368e-6,  3.4282756151716935353e-6,
        3.3884747665140244189e-7,    -3.0414626605007510479e-7, -5.4072131116253172879e-8,
        3.0616566957707548256e-8,    6.280765543016088981e-9,   -3.5322875530619093313e-9,
        -5.9892798297676734166e-10,  4.0125131814610712499e-10, 3.688223599222112955e-11,
        -3.0011302060143814166e-11};
};

template <class T, std::size_t n>
CATENA_FN T polynomial(const T (&c)[n], T x) {
    T sum = c[n - 1];
    for (std::size_t i = n - 1; i-- > 0;) sum = sum * x + c[i];
    return sum;
}

template <class T>
struct Reduced {
    T r;                         // x = n ln 2 + r
    typename Format<T>::Bits n;  // in the low bits, plus the low bits of `round`
};
template <class T>
CATENA_FN Reduced<T> reduce(T x, T round = Format<T>::round) {
    using F = Format<T>;
    const T shifted = x * F::log2_e + round;
    const T n = shifted - round;
    return {(x - n * F::ln2_high) - n * F::ln2_low, std::bit_cast<typename F::Bits>(shifted)};
}
// The two parts of e^x = e^r 2^n.
template <class T>
struct Scaled {
    T r, power;  // 2^(n + more), infinite above the normal numbers
};
template <class T>
CATENA_FN Scaled<T> reduce_and_scale(T x, int more = 0) {
    using F = Format<T>;
    const auto [r, n] = reduce(x, F::round + T(F::bias) + T(more));
    return {r, std::bit_cast<T>(n << F::mantissa)};
}
template <class T>
CATENA_FN T exp_of_rest(T r) {
    return (polynomial(Format<T>::exp, r) * r + T(1)) * r + T(1);
}
template <class T>
CATENA_FN T with_sign_of(T x, T a) {  // a >= 0
    using Bits = typename Format<T>::Bits;
    constexpr Bits sign = ~(~Bits{0} >> 1);
    return std::bit_cast<T>(std::bit_cast<Bits>(a) | (std::bit_cast<Bits>(x) & sign));
}

}  // namespace detail

template <class T>
concept Number = std::floating_point<T> || std::signed_integral<T>;

template <Number T>
CATENA_FN T where(bool condition, T yes, T no) {
    return condition ? yes : no;
}
template <Number T>
CATENA_FN T where(T condition, T yes, T no) {
    return condition != T(0) ? yes : no;
}
template <std::floating_point T>
CATENA_FN bool isnan(T x) {
    return x != x;
}
// Returns value, or NaN if x is NaN: for gradients of functions that compare x. All comparisons
// with NaN are false, so no branch of such a gradient gives the right result.
template <Number T>
CATENA_FN T unless_nan([[maybe_unused]] T x, T value) {
    if constexpr (std::floating_point<T>) return isnan(x) ? x : value;
    else return value;
}
template <std::floating_point T>
CATENA_FN T abs(T x) {
    return std::bit_cast<T>(std::bit_cast<typename detail::Format<T>::Bits>(x) &
                            (~typename detail::Format<T>::Bits{0} >> 1));
}
template <std::signed_integral T>
CATENA_FN T abs(T x) {
    return x < 0 ? -x : x;
}
// As in NumPy, the result is NaN if either argument is.
template <Number T>
CATENA_FN T max(T a, T b) {
    return a > b || a != a ? a : b;
}
template <Number T>
CATENA_FN T min(T a, T b) {
    return a < b || a != a ? a : b;
}

template <std::floating_point T>
CATENA_FN T sqrt(T x) {
    return std::sqrt(x);
}

template <std::floating_point T>
CATENA_FN T exp(T x) {
#if defined(__CUDA_ARCH__)
    return ::exp(x);
#else
    using F = detail::Format<T>;
    using Bits = typename F::Bits;
    const auto [r, n] = detail::reduce(x);
    // Multiplies by 2^n by adding n to the exponent; `lift` avoids subnormal intermediate results.
    const bool tiny = x < F::exp_normal;
    const Bits power = (n << F::mantissa) + (tiny ? F::lift << F::mantissa : Bits{0});
    T y = std::bit_cast<T>(std::bit_cast<Bits>(detail::exp_of_rest(r)) + power);
    const T lowered = y * F::lowered;
    y = tiny ? lowered : y;
    y = x < F::exp_min ? T(0) : y;
    return x <= F::exp_max ? y : x + std::numeric_limits<T>::infinity();  // or NaN
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
    const auto [r, scale] = detail::reduce_and_scale(a + a);
    const T expm1 = r + r * r * detail::polynomial(F::exp, r);
    const T t = scale * expm1 + (scale - T(1));  // e^(2|x|) - 1
    return detail::with_sign_of(x, t / (t + T(2)));
#endif
}

template <std::floating_point T>
CATENA_FN T sigmoid(T x) {
#if defined(__CUDA_ARCH__)
    return T(1) / (T(1) + ::exp(-x));
#else
    using F = detail::Format<T>;
    // At x = -sigmoid_max, 2^(n + 1) is infinite and 2^n is not, so one bound serves both signs.
    const T a = abs(x) > F::sigmoid_max ? detail::with_sign_of(x, F::sigmoid_max) : x;
    const auto [r, power] = detail::reduce_and_scale(-a, 1);
    return T(2) / (T(2) + detail::exp_of_rest(r) * power);
#endif
}

// e^x - 1, accurate near 0.
template <std::floating_point T>
CATENA_FN T expm1(T x) {
#if defined(__CUDA_ARCH__)
    return ::expm1(x);
#else
    using F = detail::Format<T>;
    const T a = x < T(-40) ? T(-40) : x;  // -1 there and below
    // 2^n may be infinite where 2^(n - 1) e^r is not.
    const auto [r, half] = detail::reduce_and_scale(a, -1);
    const T expm1_of_rest = r + r * r * detail::polynomial(F::exp, r);
    const T y = T(2) * (half * expm1_of_rest + (half - T(0.5)));
    return a <= F::exp_max ? y : x + std::numeric_limits<T>::infinity();  // or NaN
#endif
}

// log(1 + x), accurate near 0.
template <std::floating_point T>
CATENA_FN T log1p(T x) {
#if defined(__CUDA_ARCH__)
    return ::log1p(x);
#else
    const T big = x < T(1) ? T(1) : x;
    const T small = x < T(1) ? x : T(1);
    const T u = big + small;
    const T more = (small - (u - big)) / u;  // for the rounding of u; NaN where u is 0 or infinite
    const T y = log(u);
    return more == more ? y + more : y;
#endif
}

// The standard normal distribution in its lower half: a = |x|, limited to where the rest is 0; the
// density times sqrt(2 pi), and P(X < -a). P(X < x) is `lower` or, where x > 0, 1 - lower. (By
// Remez's algorithm: e^(a^2 / 2) P(X < -a) is smooth in 1 / (a + k).)
template <class T>
struct Normal {
    T a, density, lower;
};
template <std::floating_point T>
CATENA_FN Normal<T> normal(T x) {
    using F = detail::Format<T>;
    const T size = abs(x);
    const T a = size > F::tail_max ? F::tail_max : size;
#if defined(__CUDA_ARCH__)
    return {a, ::exp(T(-0.5) * a * a), ::normcdf(-a)};
#else
    const auto [r, power] = detail::reduce_and_scale(T(-0.5) * a * a);
    const T density = detail::exp_of_rest(r) * power;
    const T t = F::tail_k / (a + F::tail_k);
    return {a, density,
            density * (t * detail::polynomial(F::tail, F::tail_scale * t - F::tail_shift))};
#endif
}

// The error function. (By Remez's algorithm, erf(x) / x in x^2 below 3/4.)
template <std::floating_point T>
CATENA_FN T erf(T x) {
#if defined(__CUDA_ARCH__)
    return ::erf(x);
#else
    const T near = x * detail::polynomial(detail::Format<T>::erf, x * x);
    const T lower = normal(x * T(1.41421356237309504880L)).lower;
    const T far = detail::with_sign_of(x, T(1) - T(2) * lower);
    return abs(x) < T(0.75) ? near : far;
#endif
}

template <std::floating_point T>
CATENA_FN T floor(T x) {
    return std::floor(x);
}
template <std::floating_point T>
CATENA_FN T ceil(T x) {
    return std::ceil(x);
}

// Not vectorized: these call the C library, which handles every special case.
template <std::floating_point T>
CATENA_FN T pow(T x, T y) {
    return std::pow(x, y);
}
template <std::floating_point T>
CATENA_FN T sin(T x) {
    return std::sin(x);
}
template <std::floating_point T>
CATENA_FN T cos(T x) {
    return std::cos(x);
}

}  // namespace catena::plugin::math
