// Elementary functions.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Abs {
    static constexpr auto about =
        describe("catena.abs", "y = |x|; the gradient is 0 at 0 and NaN at NaN", in("x"), out("y"))
            .example("x=(2,3)[0.5,1.5]")
            .example("x=(2,3)[-1.5,-0.5]")
            .example("x=()[-1.5,-0.5]");
    using types = Numbers;

    CATENA_FN static auto forward(auto x) { return math::abs(x); }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        return math::where(x > T(0), gy, math::where(x < T(0), -gy, math::unless_nan(x, T(0))));
    }
};

struct Exp {
    static constexpr auto about = describe("catena.exp", "y = e^x", in("x"), out("y"))
                                      .example("x=(2,3)")
                                      .example("x=(4)[-9,-3]")
                                      .example("x=()");

    CATENA_FN static auto forward(auto x) { return math::exp(x); }
    CATENA_FN static auto backward(auto gy, auto, auto y) { return gy * y; }
};

// A function of positive numbers.
constexpr auto of_positive(const char* name, const char* doc) {
    return describe(name, doc, in("x"), out("y"))
        .example("x=(2,3)[0.5,2]")
        .example("x=(4)[20,90]")
        .example("x=()[0.5,2]");
}
struct Log {
    static constexpr auto about =
        of_positive("catena.log", "y = natural logarithm of x; -inf at 0, NaN below");

    CATENA_FN static auto forward(auto x) { return math::log(x); }
    CATENA_FN static auto backward(auto gy, auto x) { return gy / x; }
};

struct Expm1 {
    static constexpr auto about =
        describe("catena.expm1", "y = e^x - 1, accurate near 0", in("x"), out("y"))
            .example("x=(2,3)")
            .example("x=(4)[-9,-3]")
            .example("x=()");

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::where(x == T(0), x, math::expm1(x));  // keeps the sign of 0
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        return gy * math::exp(x);  // y + 1 has lost the digits of small e^x
    }
};

struct Log1p {
    static constexpr auto about =
        describe("catena.log1p", "y = log(1 + x), accurate near 0; -inf at -1, NaN below", in("x"),
                 out("y"))
            .example("x=(2,3)[-0.5,2]")
            .example("x=(4)[20,90]")
            .example("x=()[-0.5,2]");

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::where(x == T(0), x, math::log1p(x));  // keeps the sign of 0
    }
    CATENA_FN static auto backward(auto gy, auto x) { return gy / (1 + x); }
};

// log(x) / log(base). float32 is computed in float64 and float64 by the C library, so that powers of
// the base give integers.
template <class Base>
struct LogTo {
    static constexpr int work = 16;  // cost of the C library's log10

    template <class T>
    CATENA_FN static T forward(T x) {
#if defined(__CUDA_ARCH__)
        return Base::log(x);
#else
        if constexpr (sizeof(T) == 8) return Base::log(x);
        else return static_cast<T>(math::log(static_cast<double>(x)) * Base::factor);
#endif
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        return gy * T(Base::factor) / x;
    }
};
struct ToTwo {
    static constexpr double factor = 1.4426950408889634074;
    CATENA_FN static auto log(auto x) { return ::log2(x); }
};
struct ToTen {
    static constexpr double factor = 0.43429448190325182765;
    CATENA_FN static auto log(auto x) { return ::log10(x); }
};
struct Log2 : LogTo<ToTwo> {
    static constexpr auto about =
        of_positive("catena.log2", "y = logarithm of x to base 2; -inf at 0, NaN below");
};
struct Log10 : LogTo<ToTen> {
    static constexpr auto about =
        of_positive("catena.log10", "y = logarithm of x to base 10; -inf at 0, NaN below");
};

struct Sqrt {
    static constexpr auto about = of_positive("catena.sqrt", "y = square root of x; NaN below 0");

    CATENA_FN static auto forward(auto x) { return math::sqrt(x); }
    CATENA_FN static auto backward(auto gy, auto, auto y) { return gy / (2 * y); }
};

struct Rsqrt {
    static constexpr auto about =
        of_positive("catena.rsqrt", "y = 1 / sqrt(x); inf at 0, NaN below");

    CATENA_FN static auto forward(auto x) { return 1 / math::sqrt(x); }
    template <class T>
    CATENA_FN static T backward(T gy, T, T y) {
        return T(-0.5) * gy * (y * y * y);
    }
};

struct Pow {
    static constexpr auto about =
        describe("catena.pow",
                 "y = x0 ^ x1\n\n"
                 "If x0 is 0, the gradient of x0 is 0 if x1 is 0, and that of x1 is 0 if x1 is not "
                 "negative.",
                 in("x0", "x1"), out("y"))
            .example("x0=(2,3)[0.5,2] x1=(2,3)")
            .example("x0=(2,1)[0.5,2] x1=(1,3)[1,2]")
            .example("x0=()[0.5,2] x1=(3)");
    static constexpr int work = 16;  // cost of the C library's pow

    CATENA_FN static auto forward(auto x0, auto x1) { return math::pow(x0, x1); }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T x0, T x1, T y) {
        // Unchosen values of where() must be finite too: gradients of gradients multiply them by 0.
        const auto base = x0 == T(0);
        const auto none = base & (x1 == T(0));
        const auto flat = base & (x1 >= T(0));
        const T n = math::where(none, T(1), x1);
        return {math::where(none, T(0), gy * n * math::pow(x0, n - T(1))),
                math::where(flat, T(0), gy * y * math::log(math::where(flat, T(1), x0)))};
    }
};

struct PowConstVar {
    static constexpr auto about = describe("catena.pow_const_var", "y = value ^ x", in("x"),
                                           out("y"), required<double>("value", "the base"))
                                      .example("x=(2,3) value=2.5")
                                      .example("x=()[1,2] value=0.5");
    static constexpr int work = 16;  // cost of the C library's pow

    CATENA_FN static auto forward(auto x, auto value) { return math::pow(value, x); }
    template <class T>
    CATENA_FN static T backward(T gy, T, T y, T value) {
        // 0^x is 0, 1 or, for x < 0, inf. A finite log keeps gradients of gradients finite.
        const auto zero = value == T(0);
        const T factor = math::log(math::where(zero, T(1e-30), value));
        return math::where(zero & (y <= T(1)), T(0), gy * y * factor);
    }
};

struct PowVarConst {
    static constexpr auto about = describe("catena.pow_var_const", "y = x ^ value", in("x"),
                                           out("y"), required<double>("value", "the exponent"))
                                      .example("x=(2,3)[0.5,1.5] value=2.5")
                                      .example("x=(2,3)[-1.5,-0.5] value=3")
                                      .example("x=()[0.5,1.5] value=-1");
    static constexpr int work = 16;  // cost of the C library's pow

    CATENA_FN static auto forward(auto x, auto value) { return math::pow(x, value); }
    template <class T>
    CATENA_FN static T backward(T gy, T x, T value) {
        const auto none = value == T(0);  // 0 * x^-1 would be NaN at x = 0
        return gy * value * math::pow(x, value - math::where(none, T(0), T(1)));
    }
};

CATENA_FUNCTIONS(Abs, Exp, Expm1, Log, Log1p, Log2, Log10, Sqrt, Rsqrt, Pow, PowConstVar,
                 PowVarConst);

}  // namespace catena::plugins
