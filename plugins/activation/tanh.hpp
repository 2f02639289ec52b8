// Hyperbolic tangent.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Tanh {
    static constexpr auto about = describe("catena.tanh", "y = tanh(x)", in("x"), out("y"))
                                      .example("x=(2,3)")
                                      .example("x=()")
                                      .example("x=(5)[-3,3]");

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::tanh(x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T y) {
        return gy * (T(1) - y * y);
    }
};

CATENA_FUNCTIONS(Tanh);

}  // namespace catena::plugins
