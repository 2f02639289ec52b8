// Steps divided by a norm of past gradients: AdaGrad (Duchi, Hazan and Singer, JMLR 2011), RMSprop
// (Tieleman and Hinton, lecture 6.5 of Neural Networks for Machine Learning, 2012), and AdaDelta
// (Zeiler, 2012), whose steps have the unit of the parameter.
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

struct AdaDeltaUpdate {
    static constexpr auto about =
        describe(
            "catena.ada_delta_update",
            "dx = sqrt((msdx + eps) / (msg + eps)) * grad; param -= dx, with running means msg "
            "and msdx",
            in(Port("param").mutated(), "grad", state("msg", "mean of grad^2"),
               state("msdx", "mean of dx^2")),
            out(), below_one(attr("rho", 0.95, "decay of the means")),
            not_negative(attr("eps", 1e-6, "keeps the ratio finite")))
            .example("param=(2,3) grad=(2,3) msg=(2,3)[0,1] msdx=(2,3)[0,1]");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& msg, T& msdx, T rho, T eps) {
        msg = rho * msg + (T(1) - rho) * grad * grad;
        const T dx = math::sqrt((msdx + eps) / (msg + eps)) * grad;
        msdx = rho * msdx + (T(1) - rho) * dx * dx;
        param -= dx;
    }
};

CATENA_FUNCTIONS(AdaGradUpdate, RmspropUpdate, AdaDeltaUpdate);

}  // namespace catena::plugins
