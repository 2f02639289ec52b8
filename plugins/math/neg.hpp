// Negation.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Neg {
    static constexpr auto about =
        describe("catena.neg", "y = -x", in("x"), out("y")).example("x=(2,3)").example("x=()");
    using types = Numbers;

    template <class T>
    CATENA_FN static T forward(T x) {
        return -x;
    }
    template <class T>
    CATENA_FN static T backward(T gy, T) {
        return -gy;
    }
};

CATENA_FUNCTIONS(Neg);

}  // namespace catena::plugins
