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

    CATENA_FN static auto forward(auto x) { return math::sigmoid(x); }
    CATENA_FN static auto backward(auto gy, auto, auto y) { return gy * y * (1 - y); }
};

struct Tanh {
    static constexpr auto about = describe("catena.tanh", "y = tanh(x)", in("x"), out("y"))
                                      .example("x=(2,3)")
                                      .example("x=()")
                                      .example("x=(5)[-3,3]");

    CATENA_FN static auto forward(auto x) { return math::tanh(x); }
    CATENA_FN static auto backward(auto gy, auto, auto y) { return gy * (1 - y * y); }
};

CATENA_FUNCTIONS(Sigmoid, Tanh);

}  // namespace catena::plugins
