// Absolute value.
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

CATENA_FUNCTIONS(Abs);

}  // namespace catena::plugins
