// Stochastic gradient descent, and with momentum (Polyak, 1964).
#pragma once

#include "update_types.hpp"

namespace catena::plugins {

struct SgdUpdate {
    static constexpr auto about =
        describe("catena.sgd_update", "param -= lr * grad", in(Port("param").mutated(), "grad"),
                 out(), not_negative(attr("lr", 0.01, "the learning rate")))
            .example("param=(2,3) grad=(2,3)")
            .example("param=() grad=() lr=0.5");

    template <class T>
    CATENA_FN static void update(T& param, T grad, T lr) {
        param -= lr * grad;
    }
};

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

CATENA_FUNCTIONS(SgdUpdate, MomentumSgdUpdate);

}  // namespace catena::plugins
