// Rectified linear units.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Relu {
    static constexpr auto about =
        describe("catena.relu", "y = max(x, 0); the gradient is 0 at 0 and NaN at NaN", in("x"),
                 out("y"))
            .example("x=(2,3)[0.5,1.5]")
            .example("x=(2,3)[-1.5,-0.5]")
            .example("x=()[0.5,1.5]");

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::max(x, T(0));
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T y) {
        return math::where(y > T(0), gy, math::unless_nan(y, T(0)));
    }
};

struct LeakyRelu {
    static constexpr auto about =
        describe(
            "catena.leaky_relu",
            "y = x where x >= 0, else slope * x; the gradient is the slope at 0 and NaN at NaN",
            in("x"), out("y"), attr("slope", 0.2, "the slope where x < 0"))
            .since(2)
            .example("x=(2,3)[0.5,1.5]")
            .example("x=(2,3)[-1.5,-0.5]")
            .example("x=(4)[-1.5,-0.5] slope=-0.5");

    template <class T>
    CATENA_FN static T forward(T x, T slope) {
        return math::where(x < T(0), slope * x, x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x, T slope) {
        return math::where(x > T(0), gy, math::unless_nan(x, slope * gy));
    }
};

CATENA_FUNCTIONS(Relu, LeakyRelu);

}  // namespace catena::plugins
