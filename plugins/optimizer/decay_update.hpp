// Weight decay, as a gradient: that of rate / 2 * |param|^2.
#pragma once

#include "update_types.hpp"

namespace catena::plugins {

struct DecayUpdate {
    static constexpr auto about =
        describe("catena.decay_update", "grad += rate * param", in(Port("grad").mutated(), "param"),
                 out(), not_negative(required<double>("rate", "the factor")))
            .internal()
            .example("grad=(2,3) param=(2,3) rate=0.5")
            .example("grad=() param=() rate=0.01");

    template <class T>
    CATENA_FN static void update(T& grad, T param, T rate) {
        grad += rate * param;
    }
};

CATENA_FUNCTIONS(DecayUpdate);

}  // namespace catena::plugins
