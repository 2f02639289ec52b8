// The hinge loss of scores of classes.
#pragma once

#include "labels.hpp"

namespace catena::plugins {

struct Hinge {
    static constexpr const char* norms[] = {"L1", "L2", nullptr};
    static constexpr auto about =
        describe(
            "catena.hinge",
            "loss = max(0, 1 - x) at the label and max(0, 1 + x) at other classes, or the "
            "squares, reduced\n\nmean is the sum divided by N. The gradient at the margin is 0.",
            in(Port("x", "scores (N, classes)"),
               Port("t", "labels (N,)").of("I").not_differentiable()),
            out("loss"), attr("norm", "L1", "L2: squares").one_of(norms),
            attr("reduce", "mean", "mean or sum of the rows' losses, or no: those of all classes")
                .one_of(reductions))
            .example("x=(3,4)[-2,2] t=(3)[0,3]")
            .example("x=(2,3)[-0.9,0.9] t=(2)[0,2] norm=\"L2\" reduce=\"no\"")
            .example("x=(2,3)[-0.9,0.9] t=(2)[0,2] reduce=\"sum\"");
    static Var compose(const auto& g) {
        g.check_ndim(0, 2);
        const Var x = g.x(0);
        g.check_shape(1, {x.dim(0)});
        if (x.size() == 0) return reduced(g, x);
        // nll_loss checks the labels.
        const Var at_label = call<"catena.nll_loss">(
            {x, g.x(1), Var::missing()}, {set("reduce", "no"), set("ignore_label", none_ignored)});
        const Var is_label =
            call<"catena.one_hot">({g.x(1)}, {set("depth", x.dim(1)), set("dtype", x.dtype())});
        const Var right = call<"catena.relu">({1.0 + reshape(at_label, {x.dim(0), 1})});
        const Var wrong = call<"catena.relu">({1.0 + x});
        Var loss = math::where(is_label, right, wrong);
        if (g.template attr<"norm">() == "L2") loss = loss * loss;
        const std::string_view how = g.template attr<"reduce">();
        return reduced(loss, how == "mean" ? "batchmean" : how);
    }
};

CATENA_FUNCTIONS(Hinge);

}  // namespace catena::plugins
