// Sum of an array and a number.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct AddConstant {
    static constexpr auto about = describe("catena.add_constant", "y = x + value", in("x"),
                                           out("y"), required<double>("value", "the number added"))
                                      .example("x=(2,3) value=0.5")
                                      .example("x=() value=-2");
    using types = Numbers;

    template <class T>
    CATENA_FN static T forward(T x, T value) {
        return x + value;
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T) {
        return gy;
    }
};

CATENA_FUNCTIONS(AddConstant);

}  // namespace catena::plugins
