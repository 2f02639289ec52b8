// Difference of a number and an array.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct SubFromConstant {
    static constexpr auto about =
        describe("catena.sub_from_constant", "y = value - x", in("x"), out("y"),
                 required<double>("value", "the number subtracted from"))
            .example("x=(2,3) value=2.5")
            .example("x=() value=-0.5")
            .example("x=(3) value=3");
    using types = Numbers;

    template <class T>
    CATENA_FN static T forward(T x, T value) {
        return value - x;
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T) {
        return -gy;
    }
};

CATENA_FUNCTIONS(SubFromConstant);

}  // namespace catena::plugins
