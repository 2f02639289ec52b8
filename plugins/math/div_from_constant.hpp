// Quotient of a number and an array.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct DivFromConstant {
    static constexpr auto about = describe("catena.div_from_constant", "y = value / x", in("x"),
                                           out("y"), required<double>("value", "the dividend"))
                                      .example("x=(2,3)[0.5,1.5] value=2.5")
                                      .example("x=(3)[-1.5,-0.5] value=-1")
                                      .example("x=()[0.5,1.5] value=1");

    template <class T>
    CATENA_FN static T forward(T x, T value) {
        return value / x;
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x, T y, T) {
        return -gy * y / x;
    }
};

CATENA_FUNCTIONS(DivFromConstant);

}  // namespace catena::plugins
