// Sigmoid functions: the logistic function and the hyperbolic tangent.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Sigmoid {
    static constexpr auto about =
        describe("catena.sigmoid", "y = 1 / (1 + e^-x)", in("x"), out("y"))
            .example("x=(2,3)")
            .example("x=()")
            .example("x=(5)[-4,4]");

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::sigmoid(x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T y) {
        return gy * y * (T(1) - y);
    }
};

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

CATENA_FUNCTIONS(Sigmoid, Tanh);

}  // namespace catena::plugins
