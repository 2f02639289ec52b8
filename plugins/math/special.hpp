// The error function and trigonometric functions.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Erf {
    static constexpr auto about =
        describe("catena.erf",
                 "y = the error function, 2 / sqrt(pi) times the integral of e^-t^2 "
                 "from 0 to x",
                 in("x"), out("y"))
            .example("x=(2,3)")
            .example("x=(4)[-3,-1]")
            .example("x=()[1,3]");

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::erf(x);
    }
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

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::sin(x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        return gy * math::cos(x);
    }
};

struct Cos {
    static constexpr auto about =
        describe("catena.cos", "y = cos(x), x in radians", in("x"), out("y"))
            .example("x=(2,3)")
            .example("x=(4)[-9,9]")
            .example("x=()");
    static constexpr int work = 16;  // cost of the C library's cos

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::cos(x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        return -gy * math::sin(x);
    }
};

CATENA_FUNCTIONS(Erf, Sin, Cos);

}  // namespace catena::plugins
