// Larger of two arrays, element by element.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Maximum {
    static constexpr auto about =
        describe("catena.maximum",
                 "y = the larger of x0 and x1. If one is NaN, y and both gradients are NaN. If "
                 "they are equal, x0 gets the gradient",
                 in("x0", "x1"), out("y"))
            .example("x0=(2,3)[0.5,1.5] x1=(2,3)[-1.5,-0.5]")
            .example("x0=(3)[-1.5,-0.5] x1=(2,3)[0.5,1.5]")
            .example("x0=(2,1)[-1.5,-0.5] x1=(1,3)[0.5,1.5]")
            .example("x0=()[0.5,1.5] x1=(2)[-1.5,-0.5]");
    using types = Numbers;

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        return math::max(x0, x1);
    }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T x0, T x1) {
        const T other = math::unless_nan(x0, math::unless_nan(x1, T(0)));
        return {math::where(x0 >= x1, gy, other), math::where(x0 < x1, gy, other)};
    }
};

CATENA_FUNCTIONS(Maximum);

}  // namespace catena::plugins
