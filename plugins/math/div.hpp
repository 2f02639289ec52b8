// Quotient of two arrays.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Div {
    static constexpr auto about = describe("catena.div", "y = x0 / x1", in("x0", "x1"), out("y"))
                                      .example("x0=(2,3) x1=(2,3)[0.5,1.5]")
                                      .example("x0=(2,3) x1=(3)[-1.5,-0.5]")
                                      .example("x0=(2,1) x1=(1,3)[0.5,1.5]")
                                      .example("x0=(2,3) x1=()[-1.5,-0.5]");

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        return x0 / x1;
    }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T x0, T x1) {
        const T g0 = gy / x1;
        return {g0, -g0 * x0 / x1};
    }
};

CATENA_FUNCTIONS(Div);

}  // namespace catena::plugins
