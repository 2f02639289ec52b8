// Samples with gradients of their parameters, and functions that add noise in training.
#pragma once

#include <catena/plugin.hpp>

#include "draws.hpp"

namespace catena::plugins {

struct Gaussian {
    static constexpr auto about =
        describe(
            "catena.gaussian",
            "y = mean + e^(ln_var / 2) eps: a sample of normal distributions with gradients of "
            "their parameters",
            in(Port("mean", "the means"), Port("ln_var", "the logarithms of the variances"),
               Port("eps", "numbers of N(0, 1); missing: they are drawn").optional()),
            out("y"))
            .stochastic()
            .example("mean=(2,3) ln_var=(2,3) eps=(2,3)")
            .example("mean=(2,3) ln_var=(2,3)");
    static Var compose(const auto& g) {
        const Meta mean = g.x_meta(0);
        g.check_shape(1, mean.shape());
        g.check_shape(2, mean.shape());
        const Var eps = g.has(2) ? g.x(2) : normal(mean.shape(), mean.dtype);
        return check_floating(g, 0) + math::exp(g.x(1) * 0.5) * eps;
    }
};

struct Zoneout {
    static constexpr auto about =
        describe(
            "catena.zoneout",
            "y = x\n\nIn training, each element is that of h with the probability `ratio`, else "
            "that of x. (Krueger et al., \"Zoneout: Regularizing RNNs by Randomly Preserving "
            "Hidden "
            "Activations\", 2017.)",
            in(Port("h", "the state before"), Port("x", "the state")), out("y"),
            attr("ratio", 0.5, "the probability").range(0, 1))
            .stochastic()
            .example("h=(2,3) x=(2,3) ratio=1")
            .example("h=(4,8) x=(4,8)");
    static Var compose(const auto& g) {
        g.check_shape(1, g.x_meta(0).shape());
        if (!g.train()) return g.x(1);
        const Meta x = g.x_meta(1);
        const Var numbers = uniform(x.shape(), dtype_of<float>());
        const Var old = call<"catena.is_greater">({g.template attr<"ratio">(), numbers});
        return math::where(old, g.x(0), g.x(1));
    }
};

struct Rrelu {
    static constexpr auto about =
        describe(
            "catena.rrelu",
            "y = x where x >= 0, else r x, with r from U[l, u) in training, else their mean\n\n"
            "(Xu et al., \"Empirical Evaluation of Rectified Activations in Convolutional "
            "Network\", 2015.)",
            in("x", Port("r", "used in training; missing: it is drawn").optional()), out("y"),
            attr("l", 1. / 8, "the least r"), attr("u", 1. / 3, "the upper limit of r"))
            .stochastic()
            .example("x=(2,3)[0.5,1] r=(2,3)")
            .example("x=(2,3)[-1,-0.5] r=(2,3)")
            .example("x=(2,3)[-1,-0.5]");
    static Var compose(const auto& g) {
        const double l = g.template attr<"l">(), u = g.template attr<"u">();
        g.check(0 <= l && l < u && u < 1, "l, u", "0 <= l < u < 1",
                text_of(l) + " and " + text_of(u), CATENA_E_INVALID);
        const Meta x = g.x_meta(0);
        g.check_shape(1, x.shape());
        Var r = (l + u) / 2;
        if (g.train()) r = g.has(1) ? g.x(1) : uniform(x.shape(), x.dtype, l, u);
        const Var v = check_floating(g, 0);
        return math::where(v >= 0.0, v, v * r);
    }
};

CATENA_FUNCTIONS(Gaussian, Zoneout, Rrelu);

}  // namespace catena::plugins
