// Stochastic gradient descent.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct SgdUpdate {
    static constexpr auto about =
        describe("catena.sgd_update", "param -= lr * grad", in(Port("param").mutated(), "grad"),
                 out(), attr("lr", 0.01, "the learning rate"))
            .example("param=(2,3) grad=(2,3)")
            .example("param=() grad=() lr=0.5");

    template <class T>
    CATENA_FN static void update(T& param, T grad, T lr) {
        param -= lr * grad;
    }
};

}  // namespace catena::plugins
