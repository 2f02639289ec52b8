// Product of an array and a number.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct MulConstant {
    static constexpr auto about = describe("catena.mul_constant", "y = value * x", in("x"),
                                           out("y"), required<double>("value", "the factor"))
                                      .example("x=(2,3) value=2.5")
                                      .example("x=() value=-0.5")
                                      .example("x=(3) value=3");
    using types = Numbers;

    template <class T>
    CATENA_FN static T forward(T x, T value) {
        return value * x;
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T value) {
        return value * gy;
    }
};

CATENA_FUNCTIONS(MulConstant);

}  // namespace catena::plugins
