// Natural logarithm.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Log {
    static constexpr auto about =
        describe("catena.log", "y = natural logarithm of x; -inf at 0, NaN below", in("x"),
                 out("y"))
            .example("x=(2,3)[0.5,2]")
            .example("x=(4)[20,90]")
            .example("x=()[0.5,2]");

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::log(x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        return gy / x;
    }
};

CATENA_FUNCTIONS(Log);

}  // namespace catena::plugins
