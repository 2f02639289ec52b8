// Gradient descent with momentum (Polyak, 1964).
#pragma once

#include "update_types.hpp"

namespace catena::plugins {

struct MomentumSgdUpdate {
    static constexpr auto about =
        describe("catena.momentum_sgd_update", "v = momentum * v - lr * grad; param += v",
                 in(Port("param").mutated(), "grad", state("v", "the velocity")), out(),
                 not_negative(attr("lr", 0.01, "the learning rate")),
                 below_one(attr("momentum", 0.9, "decay of v")))
            .example("param=(2,3) grad=(2,3) v=(2,3)");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& v, T lr, T momentum) {
        v = momentum * v - lr * grad;
        param += v;
    }
};

CATENA_FUNCTIONS(MomentumSgdUpdate);

}  // namespace catena::plugins
