// Samples of distributions whose parameters are arrays.
#pragma once

#include <catena/plugin.hpp>

#include "draws.hpp"

namespace catena::plugins {

struct Bernoulli {
    static constexpr auto about =
        describe("catena.bernoulli", "y = 1 with probability p, else 0", in("p"), out("y"))
            .stochastic()
            .not_differentiable()
            .example("p=(2,3)[0,1]");
    static Var compose(const auto& g) {
        const Var p = widened(check_floating(g, 0));
        const Meta x = g.x_meta(0);
        return in_dtype(p > uniform(x.shape(), p.dtype()), x.dtype);
    }
};

struct GumbelSoftmax {
    static constexpr auto about =
        describe(
            "catena.gumbel_softmax",
            "y = softmax((log_pi + g) / tau) along an axis, with g from the Gumbel distribution: "
            "a relaxed sample of a categorical distribution\n\n"
            "log_pi need not be normalized. (Jang et al., \"Categorical Reparameterization with "
            "Gumbel-Softmax\", 2017.)",
            in("log_pi"), out("y"), attr("tau", 0.1, "the temperature, more than 0"),
            attr("axis", 1, "the axis of the classes"))
            .stochastic()
            .example("log_pi=(2,3) tau=2");
    static Var compose(const auto& g) {
        const double tau = g.template attr<"tau">();
        g.check(tau > 0, "tau", "more than 0", tau, CATENA_E_INVALID);
        // The numbers are multiples of 2^-24, so that only 0 has no finite logarithm.
        const Meta x = g.x_meta(0);
        const Var u = uniform(x.shape(), dtype_of<float>());
        const Var noise = -math::log(-math::log(math::max(u, 0x1p-25)));
        return call<"catena.softmax">({(g.x(0) + in_dtype(noise, g.x(0).dtype())) * (1 / tau)},
                                      {g.same("axis")});
    }
};

CATENA_FUNCTIONS(Bernoulli, GumbelSoftmax);

}  // namespace catena::plugins
