// Choice between two arrays.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Where {
    static constexpr auto about =
        describe("catena.where", "y = x0 where condition is not 0, else x1",
                 in(Port("condition").not_differentiable(), "x0", "x1"), out("y"))
            .example("condition=(2,3)[0,0] x0=(2,3) x1=(2,3)")
            .example("condition=(2,3) x0=(3) x1=(2,1)")
            .example("condition=() x0=(2,3) x1=(2,3)")
            .example("condition=(2,3)[0,0] x0=() x1=(3)");
    using types = Numbers;

    template <class T>
    CATENA_FN static T forward(T condition, T x0, T x1) {
        return math::where(condition == T(0), x1, x0);
    }
    template <class T>
    CATENA_FN static Grads<T, 3> backward(T gy, T condition, T, T) {
        return {T(0), math::where(condition, gy, T(0)), math::where(condition, T(0), gy)};
    }
};

CATENA_FUNCTIONS(Where);

}  // namespace catena::plugins
