// my_name: one description for all dtypes, instruction sets, threads and orders of the gradient.
#pragma once
#include <catena/plugin.hpp>

namespace my_name_functions {
using namespace catena::plugin;

struct MyName {
    static constexpr auto about = describe("org.example.my_name", "y = x * sigmoid(beta * x)",
                                           in("x"), out("y"), attr("beta", 1.0, "steepness"))
                                      .example("x=(2,3)")
                                      .example("x=(4)[-3,3] beta=2");

    template <class T>
    CATENA_FN static T forward(T x, T beta) {
        return x * math::sigmoid(beta * x);
    }

    template <class T>
    CATENA_FN static T backward(T gy, T x, T beta) {
        const T s = math::sigmoid(beta * x);
        return gy * s * (1 + beta * x * (1 - s));
    }
};
}  // namespace my_name_functions
