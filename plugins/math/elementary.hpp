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

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::abs(x);
    }
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

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::exp(x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T y) {
        return gy * y;
    }
};

struct Log {
    static constexpr auto about =
        describe("catena.log", "y = natural logarithm of x; -inf at 0, NaN below", in("x"),
                 out("y"))
            .example("x=(2,3)[0.5,2]")
            .example("x=(4)[20,90]")
            .example("x=()[0.5,2]");

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::log(x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        return gy / x;
    }
};

struct Sqrt {
    static constexpr auto about =
        describe("catena.sqrt", "y = square root of x; NaN below 0", in("x"), out("y"))
            .example("x=(2,3)[0.5,2]")
            .example("x=(4)[20,90]")
            .example("x=()[0.5,2]");

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::sqrt(x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T y) {
        return gy / (T(2) * y);
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

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        return math::pow(x0, x1);
    }
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

    template <class T>
    CATENA_FN static T forward(T x, T value) {
        return math::pow(value, x);
    }
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

    template <class T>
    CATENA_FN static T forward(T x, T value) {
        return math::pow(x, value);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x, T value) {
        const auto none = value == T(0);  // 0 * x^-1 would be NaN at x = 0
        return gy * value * math::pow(x, value - math::where(none, T(0), T(1)));
    }
};

CATENA_FUNCTIONS(Abs, Exp, Log, Sqrt, Pow, PowConstVar, PowVarConst);

}  // namespace catena::plugins
