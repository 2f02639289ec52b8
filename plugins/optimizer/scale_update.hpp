// Scaling in place, by a number that is where the tensor is: gradients that are clipped.
#pragma once

#include "update_types.hpp"

namespace catena::plugins {

struct ScaleUpdate {
    static constexpr auto about =
        describe("catena.scale_update", "x *= factor",
                 in(Port("x").mutated(), Port("factor", "(); float32 for halves").of("S")), out())
            .internal()
            .example("x=(2,3) factor=()[0.5,2]")
            .example("x=() factor=()[0.5,2]");
    using types = UpdateTypes;
    static constexpr auto single_x = ports(1);

    template <class T>
    CATENA_FN static void update(T& x, T factor) {
        x *= factor;
    }
};

CATENA_FUNCTIONS(ScaleUpdate);

}  // namespace catena::plugins
