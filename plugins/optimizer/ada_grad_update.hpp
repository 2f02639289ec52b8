// AdaGrad (Duchi, Hazan and Singer, JMLR 2011).
#pragma once

#include "update_types.hpp"

namespace catena::plugins {

struct AdaGradUpdate {
    static constexpr auto about =
        describe("catena.ada_grad_update", "h += grad^2; param -= lr * grad / (sqrt(h) + eps)",
                 in(Port("param").mutated(), "grad", state("h", "sum of grad^2")), out(),
                 not_negative(attr("lr", 0.001, "the learning rate")),
                 not_negative(attr("eps", 1e-8, "added to sqrt(h)")))
            .example("param=(2,3) grad=(2,3) h=(2,3)[0,1]");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& h, T lr, T eps) {
        h += grad * grad;
        param -= lr * grad / (math::sqrt(h) + eps);
    }
};

CATENA_FUNCTIONS(AdaGradUpdate);

}  // namespace catena::plugins
