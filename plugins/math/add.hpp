// Sum of two arrays.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Add {
    static constexpr auto about = describe("catena.add", "y = x0 + x1", in("x0", "x1"), out("y"))
                                      .with(CATENA_FUNCTION_ADDITION);

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        return x0 + x1;
    }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T, T) {
        return {gy, gy};
    }
};

}  // namespace catena::plugins
