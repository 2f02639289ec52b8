// Stochastic gradient descent.
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

CATENA_FUNCTIONS(SgdUpdate);

}  // namespace catena::plugins
