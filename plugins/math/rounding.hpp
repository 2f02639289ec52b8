// Piecewise functions: rounding, sign, limits; and the square.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

constexpr auto steps(const char* name, const char* doc) {
    return describe(name, doc, in("x"), out("y"))
        .not_differentiable()
        .example("x=(2,3)")
        .example("x=(4)[-9,9]")
        .example("x=()");
}

struct Floor {
    static constexpr auto about = steps("catena.floor", "y = the largest integer not above x");

    CATENA_FN static auto forward(auto x) { return math::floor(x); }
};

struct Ceil {
    static constexpr auto about = steps("catena.ceil", "y = the smallest integer not below x");

    CATENA_FN static auto forward(auto x) { return math::ceil(x); }
};

struct Fix {
    static constexpr auto about =
        steps("catena.fix", "y = the integer next to x, in the direction of 0");

    CATENA_FN static auto forward(auto x) { return x < 0 ? math::ceil(x) : math::floor(x); }
};

struct Sign {
    static constexpr auto about =
        steps("catena.sign", "y = 1 where x > 0, -1 where x < 0, 0 at 0, NaN at NaN");
    using types = Numbers;

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::where(x > T(0), T(1), math::where(x < T(0), T(-1), math::unless_nan(x, T(0))));
    }
};

struct Square {
    static constexpr auto about =
        describe("catena.square", "y = x^2", in("x"), out("y")).example("x=(2,3)").example("x=()");
    using types = Numbers;

    CATENA_FN static auto forward(auto x) { return x * x; }
    CATENA_FN static auto backward(auto gy, auto x) { return 2 * gy * x; }
};

struct Clip {
    static constexpr auto about =
        describe("catena.clip",
                 "y = x limited to x_min <= y <= x_max\n\n"
                 "The gradient is 0 where x is beyond a limit, and NaN at NaN. If x_min > x_max, "
                 "y = x_max.",
                 in("x"), out("y"), required<double>("x_min", "the lower limit"),
                 required<double>("x_max", "the upper limit"))
            .example("x=(2,3)[-0.9,0.9] x_min=-1 x_max=1")
            .example("x=(2,3)[1.5,3] x_min=-1 x_max=1")
            .example("x=()[-3,-1.5] x_min=-1 x_max=1");
    using types = Numbers;

    template <class T>
    CATENA_FN static T forward(T x, T x_min, T x_max) {
        return math::min(math::max(x, x_min), x_max);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x, T x_min, T x_max) {
        return math::where((x >= x_min) & (x <= x_max), gy, math::unless_nan(x, T(0)));
    }
};

CATENA_FUNCTIONS(Floor, Ceil, Fix, Sign, Square, Clip);

}  // namespace catena::plugins
