// Square root.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

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

CATENA_FUNCTIONS(Sqrt);

}  // namespace catena::plugins
