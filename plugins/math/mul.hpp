// Product of two arrays.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Mul {
    static constexpr auto about =
        describe("catena.mul", "y = x0 * x1, element by element", in("x0", "x1"), out("y"))
            .example("x0=(2,3) x1=(2,3)")
            .example("x0=(2,3) x1=(3)")
            .example("x0=(2,1) x1=(1,3)")
            .example("x0=() x1=(2,3)");
    using types = Numbers;

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        return x0 * x1;
    }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T x0, T x1) {
        return {gy * x1, gy * x0};
    }
};

CATENA_FUNCTIONS(Mul);

}  // namespace catena::plugins
