// Losses of the differences of two arrays.
#pragma once

#include "reductions.hpp"

namespace catena::plugins {

// x0 - x1, or x - t.
inline Var difference(const auto& g) {
    check_same_shapes(g);
    return g.x(0) - g.x(1);
}

struct AbsoluteError {
    static constexpr auto about =
        describe("catena.absolute_error", "y = |x0 - x1|", in("x0", "x1"), out("y"))
            .example("x0=(2,3)[0.5,1] x1=(2,3)[-1,0.4]");
    static Var compose(const auto& g) { return math::abs(difference(g)); }
};
struct SquaredError {
    static constexpr auto about =
        describe("catena.squared_error", "y = (x0 - x1)^2", in("x0", "x1"), out("y"))
            .example("x0=(2,3) x1=(2,3)");
    static Var compose(const auto& g) {
        const Var d = difference(g);
        return d * d;
    }
};
struct MeanAbsoluteError {
    static constexpr auto about =
        describe("catena.mean_absolute_error", "loss = mean of |x0 - x1| over all elements",
                 in("x0", "x1"), out(Port("loss", "()")))
            .example("x0=(2,3)[0.5,1] x1=(2,3)[-1,0.4]");
    static Var compose(const auto& g) { return reduced(math::abs(difference(g)), "mean"); }
};

struct L1Loss {
    static constexpr auto about = describe("catena.l1_loss", "loss = |x - t|, reduced",
                                           in("x", "t"), out("loss"), reduce_elements("mean"))
                                      .example("x=(2,3)[0.5,1] t=(2,3)[-1,0.4]")
                                      .example("x=(2,3)[0.5,1] t=(2,3)[-1,0.4] reduce=\"no\"");
    static Var compose(const auto& g) { return reduced(g, math::abs(difference(g))); }
};

struct SmoothL1Loss {
    static constexpr auto about =
        describe("catena.smooth_l1_loss",
                 "loss = d^2 / (2 beta) for d = x - t where |d| < beta, else |d| - beta / 2, "
                 "reduced\n\nFor beta = 0 it is catena.l1_loss.",
                 in("x", "t"), out("loss"),
                 attr("beta", 1.0, "where the slope stops growing").range(0, 1e300),
                 reduce_elements("mean"))
            .example("x=(2,3)[0.1,0.4] t=(2,3)[-0.4,-0.1]")
            .example("x=(2,3)[1,2] t=(2,3)[-2,-1] beta=0.5 reduce=\"sum\"")
            .example("x=(2,3)[1,2] t=(2,3)[-2,-1] beta=0");
    static Var compose(const auto& g) {
        const double beta = g.template attr<"beta">();
        if (beta == 0) return call<"catena.l1_loss">({g.x(0), g.x(1)}, {g.same("reduce")});
        check_same_shapes(g);
        const Var y = call<"catena.huber">({g.x(0), g.x(1)}, {set("delta", beta)});
        return reduced(g, y / beta);
    }
};

struct HuberLoss {
    static constexpr const char* ways[] = {"sum_along_second_axis", "mean", "sum", "no", nullptr};
    static constexpr auto about =
        describe("catena.huber_loss",
                 "loss = d^2 / 2 for d = x - t where |d| <= delta, else delta (|d| - delta / 2), "
                 "reduced",
                 in("x", "t"), out("loss"),
                 required<double>("delta", "where the slope stops growing").range(0, 1e300),
                 attr("reduce", ways[0], "the sum along axis 1; mean or sum of all; or no").one_of(ways))
            .example("x=(2,3)[0.1,0.4] t=(2,3)[-0.4,-0.1] delta=1")
            .example("x=(2,3)[1,2] t=(2,3)[-2,-1] delta=0.5 reduce=\"mean\"");
    static Var compose(const auto& g) {
        if (g.template attr<"reduce">() == ways[0]) g.check_least_ndim(0, 2);
        check_same_shapes(g);
        return reduced(g, call<"catena.huber">({g.x(0), g.x(1)}, {g.same("delta")}));
    }
};

CATENA_FUNCTIONS(AbsoluteError, SquaredError, MeanAbsoluteError, L1Loss, SmoothL1Loss, HuberLoss);

}  // namespace catena::plugins
