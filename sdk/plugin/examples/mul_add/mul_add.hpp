// w = x * y + z, defined once for the CPU and CUDA.
#pragma once

#include <catena/plugin.hpp>

using namespace catena::plugin;

struct MulAdd {
    static constexpr auto about =
        describe("org.example.mul_add", "w = x * y + z", in("x", "y", "z"), out("w"));

    template <class T>
    CATENA_FN static T forward(T x, T y, T z) {
        return x * y + z;
    }

    template <class T>
    CATENA_FN static Grads<T, 3> backward(T gw, T x, T y, T) {
        return {gw * y, gw * x, gw};
    }
};
