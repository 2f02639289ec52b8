// Rectified linear unit.
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

CATENA_FUNCTIONS(Relu);

}  // namespace catena::plugins
