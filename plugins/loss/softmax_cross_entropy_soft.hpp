// Cross entropy of a softmax against the probabilities of the classes.
#pragma once

#include <catena/plugin/precision.hpp>

#include "labels.hpp"

namespace catena::plugins {

struct SoftmaxCrossEntropySoft {
    static constexpr auto about =
        describe("catena.softmax_cross_entropy_soft",
                 "loss = mean of -sum of t * log softmax(x), for probabilities t\n\n"
                 "The sum is over the classes, the mean over the other axes, also if there are "
                 "class weights. t need not sum to 1. Label smoothing s replaces t by "
                 "(1 - s) t + s / classes.",
                 in(Port("x", "scores (N, classes, ...)"),
                    Port("t", "probabilities of the classes, in x's shape"), class_weight),
                 out(Port("loss", "(), or (N, ...) if it is not reduced")), reduce, label_smoothing)
            .example("x=(3,4) t=(3,4)[0,1]")
            .example("x=(2,3,2) t=(2,3,2)[0,1] class_weight=(3)[0.5,2]")
            .example("x=(3,4) t=(3,4)[0,1] class_weight=(4)[0.5,2] reduce=\"no\"")
            .example("x=(2,3,2) t=(2,3,2)[0,1] label_smoothing=0.25 reduce=\"sum\"");
    static constexpr auto retain_x = ports(0, 1, 2);

    static Var compose(const auto& g) {
        const Meta x = g.x_meta(0);
        g.check_least_ndim(0, 2);
        g.check(x.dim(1) >= 1, "x.shape[1]", "at least 1 class", x.dim(1));
        g.check_shape(1, x.shape());
        g.check_shape(2, {x.dim(1)});
        const Var q = targets(g, x.shape()), log_p = log_softmax(g.x(0));
        // A target of 0 adds nothing, even if the probability of its class is 0.
        Var loss = -sum(math::where(q == 0.0, 0.0, q * log_p), {1});
        if (g.template attr<"reduce">() != "no") loss = sum(loss) * share(g, x.shape());
        return in_dtype(loss, x.dtype);
    }
    // gx = (softmax(x) * sum of q - q) * gy / rows. That of t is not 0 where t is.
    static void gradient(const auto& g) {
        const Shape x = g.x_shape(0);
        List kept = list_of(x);
        kept[1] = 1;
        Var gy = widened(g.gy(0)) * share(g, x);
        if (g.template attr<"reduce">() == "no") gy = reshape(gy, kept);
        const Var log_p = log_softmax(g.x(0));
        const catena_dtype dtype = g.x_meta(0).dtype;
        if (g.wants(0)) {
            const Var q = targets(g, x);
            g.gx(0, cast((math::exp(log_p) * sum(q, {1}, true) - q) * gy, dtype));
        }
        if (g.wants(1)) g.gx(1, cast(-log_p * slope(g, x) * gy, dtype));
    }

private:
    static Var log_softmax(const Var& x) {
        return call<"catena.log_softmax">({widened(x)}, {set("axis", 1)});
    }
    // What the mean divides by, as a factor.
    static double share(const auto& g, Shape x) {
        const bool mean = g.template attr<"reduce">() == "mean";
        return mean ? 1.0 / static_cast<double>(std::max<std::int64_t>(Axis(x, 1).count(), 1))
                    : 1.0;
    }
    // The targets q of a loss -sum of q[c] log p[c]: smoothed probabilities times the class weights.
    static Var targets(const auto& g, Shape x) {
        const Var t = widened(g.x(1));
        const double smoothing = g.template attr<"label_smoothing">();
        if (smoothing == 0) return weighted(g, x, t);
        return weighted(g, x,
                        call<"catena.mul_constant">({t}, {set("value", 1 - smoothing)}) +
                            smoothing / static_cast<double>(x[1]));
    }
    static Var slope(const auto& g, Shape x) {  // dq / dt
        return weighted(g, x, 1 - g.template attr<"label_smoothing">());
    }
    static Var weighted(const auto& g, Shape x, const Var& q) {
        if (!g.has(2)) return q;
        List beside(x.size(), 1);
        beside[1] = x[1];
        return q * reshape(widened(g.x(2)), beside);
    }
};

CATENA_FUNCTIONS(SoftmaxCrossEntropySoft);

}  // namespace catena::plugins
