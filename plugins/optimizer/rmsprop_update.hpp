// RMSprop (Tieleman and Hinton, lecture 6.5 of Neural Networks for Machine Learning, 2012).
#pragma once

#include "update_types.hpp"

namespace catena::plugins {

struct RmspropUpdate {
    static constexpr auto about =
        describe("catena.rmsprop_update",
                 "ms = alpha * ms + (1 - alpha) * grad^2; param -= lr * grad / (sqrt(ms) + eps)",
                 in(Port("param").mutated(), "grad", state("ms", "mean of grad^2")), out(),
                 not_negative(attr("lr", 0.01, "the learning rate")),
                 below_one(attr("alpha", 0.99, "decay of ms")),
                 not_negative(attr("eps", 1e-8, "added to sqrt(ms)")))
            .example("param=(2,3) grad=(2,3) ms=(2,3)[0,1]");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& ms, T lr, T alpha, T eps) {
        ms = alpha * ms + (T(1) - alpha) * grad * grad;
        param -= lr * grad / (math::sqrt(ms) + eps);
    }
};

CATENA_FUNCTIONS(RmspropUpdate);

}  // namespace catena::plugins
