// Scaling in place: gradients that are clipped.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct ScaleUpdate {
    static constexpr auto about =
        describe("catena.scale_update", "x *= value", in(Port("x").mutated()), out(),
                 required<double>("value", "the factor"))
            .internal()
            .example("x=(2,3) value=0.5")
            .example("x=() value=2");

    template <class T>
    CATENA_FN static void update(T& x, T value) {
        x *= value;
    }
};

}  // namespace catena::plugins
