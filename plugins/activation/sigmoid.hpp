// Logistic function.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Sigmoid {
    static constexpr auto about =
        describe("catena.sigmoid", "y = 1 / (1 + e^-x)", in("x"), out("y"));

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::sigmoid(x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T y) {
        return gy * y * (T(1) - y);
    }
};

}  // namespace catena::plugins
