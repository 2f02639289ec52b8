// Exponential.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

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

CATENA_FUNCTIONS(Exp);

}  // namespace catena::plugins
