// Hyperbolic tangent.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Tanh {
    static constexpr auto about = describe("catena.tanh", "y = tanh(x)", in("x"), out("y"));

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::tanh(x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T y) {
        return gy * (T(1) - y * y);
    }
};

}  // namespace catena::plugins
