// The error function, and trigonometric and hyperbolic functions.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// Formulas of this family alone, also for gradients of gradients. Those without a vectorized form
// call the C library.
namespace own {

template <std::floating_point T>
CATENA_FN T tan(T x) {
#if defined(__CUDA_ARCH__)
    return ::tan(x);
#else
    return std::tan(x);
#endif
}

// The largest x whose cosh(x) is finite.
template <class T>
inline constexpr T cosh_max = sizeof(T) == 4 ? T(0x1.65a9f8p6f) : T(0x1.633ce8fb9f87dp9);

// A quarter of e^a and of e^a - 1, which do not overflow where cosh and sinh do not.
template <std::floating_point T>
CATENA_FN T sinh(T x) {
#if defined(__CUDA_ARCH__)
    return ::sinh(x);
#else
    const T a = math::abs(x);
    const auto [r, power] = math::detail::reduce_and_scale(a > cosh_max<T> ? cosh_max<T> : a, -2);
    const T more = r + r * r * math::detail::polynomial(math::detail::Format<T>::exp, r);
    const T m = power * more + (power - T(0.25));
    const T y = T(2) * m + T(2) * m / (T(4) * m + T(1));
    return math::detail::with_sign_of(x, a > cosh_max<T> ? std::numeric_limits<T>::infinity() : y);
#endif
}
template <std::floating_point T>
CATENA_FN T cosh(T x) {
#if defined(__CUDA_ARCH__)
    return ::cosh(x);
#else
    const T a = math::abs(x);
    const auto [r, power] = math::detail::reduce_and_scale(a > cosh_max<T> ? cosh_max<T> : a, -2);
    const T q = math::detail::exp_of_rest(r) * power;
    const T y = T(2) * q + T(0.125) / q;
    return a > cosh_max<T> ? std::numeric_limits<T>::infinity() : y;
#endif
}
template <std::floating_point T>
CATENA_FN T arctanh(T x) {
#if defined(__CUDA_ARCH__)
    return ::atanh(x);
#else
    const T a = math::abs(x);
    return math::detail::with_sign_of(x, T(0.5) * math::log1p((a + a) / (T(1) - a)));
#endif
}

constexpr Probe sinh(Probe x) { return x; }
constexpr Probe cosh(Probe x) { return x; }
inline Var sinh(const Var& x) { return call<"catena.sinh">({x}); }
inline Var cosh(const Var& x) { return call<"catena.cosh">({x}); }

}  // namespace own

struct Erf {
    static constexpr auto about =
        describe("catena.erf",
                 "y = the error function, 2 / sqrt(pi) times the integral of e^-t^2 "
                 "from 0 to x",
                 in("x"), out("y"))
            .example("x=(2,3)")
            .example("x=(4)[-3,-1]")
            .example("x=()[1,3]");

    CATENA_FN static auto forward(auto x) { return math::erf(x); }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        return gy * (T(1.12837916709551257390) * math::exp(-(x * x)));
    }
};

struct Sin {
    static constexpr auto about =
        describe("catena.sin", "y = sin(x), x in radians", in("x"), out("y"))
            .example("x=(2,3)")
            .example("x=(4)[-9,9]")
            .example("x=()");
    static constexpr int work = 16;  // cost of the C library's sin

    CATENA_FN static auto forward(auto x) { return math::sin(x); }
    CATENA_FN static auto backward(auto gy, auto x) { return gy * math::cos(x); }
};

struct Cos {
    static constexpr auto about =
        describe("catena.cos", "y = cos(x), x in radians", in("x"), out("y"))
            .example("x=(2,3)")
            .example("x=(4)[-9,9]")
            .example("x=()");
    static constexpr int work = 16;  // cost of the C library's cos

    CATENA_FN static auto forward(auto x) { return math::cos(x); }
    CATENA_FN static auto backward(auto gy, auto x) { return -gy * math::sin(x); }
};

struct Tan {
    static constexpr auto about =
        describe("catena.tan", "y = tan(x), x in radians", in("x"), out("y"))
            .example("x=(2,3)")
            .example("x=(4)[-4.5,-2]")
            .example("x=()");
    static constexpr int work = 16;  // cost of the C library's tan

    CATENA_FN static auto forward(auto x) { return own::tan(x); }
    CATENA_FN static auto backward(auto gy, auto, auto y) { return gy * (1 + y * y); }
};

struct Sinh {
    static constexpr auto about =
        describe("catena.sinh", "y = sinh(x), the hyperbolic sine", in("x"), out("y"))
            .example("x=(2,3)")
            .example("x=(4)[-4,-2]")
            .example("x=()");

    CATENA_FN static auto forward(auto x) { return own::sinh(x); }
    CATENA_FN static auto backward(auto gy, auto x) { return gy * own::cosh(x); }
};

struct Cosh {
    static constexpr auto about =
        describe("catena.cosh", "y = cosh(x), the hyperbolic cosine", in("x"), out("y"))
            .example("x=(2,3)")
            .example("x=(4)[-4,-2]")
            .example("x=()");

    CATENA_FN static auto forward(auto x) { return own::cosh(x); }
    CATENA_FN static auto backward(auto gy, auto x) { return gy * own::sinh(x); }
};

struct Arctanh {
    static constexpr auto about =
        describe("catena.arctanh",
                 "y = artanh(x), the inverse of tanh; infinite at 1 and -1, NaN beyond", in("x"),
                 out("y"))
            .example("x=(2,3)[-0.7,0.7]")
            .example("x=(4)[0.7,0.9]")
            .example("x=()[-0.9,-0.7]");

    CATENA_FN static auto forward(auto x) { return own::arctanh(x); }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        // gy / (1 - x^2), whose second derivative would be NaN or inexact next to 1
        return T(0.5) * (gy / (T(1) - x) + gy / (T(1) + x));
    }
};

CATENA_FUNCTIONS(Erf, Sin, Cos, Tan, Sinh, Cosh, Arctanh);

}  // namespace catena::plugins
