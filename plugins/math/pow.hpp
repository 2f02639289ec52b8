// Power of two arrays.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Pow {
    static constexpr auto about = describe("catena.pow", "y = x0 ^ x1", in("x0", "x1"), out("y"))
                                      .example("x0=(2,3)[0.5,2] x1=(2,3)")
                                      .example("x0=(2,1)[0.5,2] x1=(1,3)[1,2]")
                                      .example("x0=()[0.5,2] x1=(3)");
    static constexpr int work = 16;  // the C library's pow

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        return math::pow(x0, x1);
    }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T x0, T x1, T y) {
        return {gy * x1 * math::pow(x0, x1 - T(1)), gy * y * math::log(x0)};
    }
};

}  // namespace catena::plugins
