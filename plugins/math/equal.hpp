// 1 where x0 equals x1, else 0.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Equal {
    static constexpr auto about =
        describe("catena.equal", "y = 1 where x0 equals x1, else 0, in the inputs' dtype",
                 in("x0", "x1"), out("y"))
            .not_differentiable()
            .example("x0=(2,3) x1=(2,3)")
            .example("x0=(2,3)[1,1] x1=(3)[1,1]")
            .example("x0=() x1=()");
    using types = Numbers;

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        return math::where(x0 == x1, T(1), T(0));
    }
};

CATENA_FUNCTIONS(Equal);

}  // namespace catena::plugins
