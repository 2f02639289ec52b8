// Losses of the distances of vectors.
#pragma once

#include <catena/plugin/precision.hpp>

#include "reductions.hpp"

namespace catena::plugins {

// The attribute `margin`, which must be positive.
double margin_of(const auto& g) {
    const double margin = g.template attr<"margin">();
    g.check(margin > 0, "margin", "more than 0", margin, CATENA_E_INVALID);
    return margin;
}

struct Contrastive {
    static constexpr auto about =
        describe(
            "catena.contrastive",
            "loss = (y d^2 + (1 - y) max(margin - d, 0)^2) / 2 for the distances d of pairs of "
            "vectors, reduced",
            in(Port("x0", "vectors (N, size)"), Port("x1", "as x0"),
               Port("y", "1 for pairs that should be close, 0 for those that should be apart: (N,)")
                   .of("I")
                   .not_differentiable()),
            out("loss"), attr("margin", 1.0, "the distance from which pairs are apart"),
            reduce_rows)
            .example("x0=(3,4) x1=(3,4) y=(3)[0,1] margin=4")
            .example("x0=(3,4) x1=(3,4) y=(3)[0,1] margin=4 reduce=\"no\"");
    static Var compose(const auto& g) {
        const double margin = margin_of(g);
        g.check_ndim(0, 2);
        g.check_shape(1, g.x_meta(0).shape());
        g.check_shape(2, {g.x(0).dim(0)});
        const Var d = widened(g.x(0)) - widened(g.x(1)), near = cast(g.x(2), dtype_of<bool>());
        const Var far = call<"catena.relu">({margin - norm(d, 2, {1})});
        // Not the square of the norm, whose second gradient at 0 is 0.
        const Var loss = math::where(near, sum(d * d, {1}), far * far) * 0.5;
        return in_dtype(reduced(g, loss), g.x(0).dtype());
    }
};

struct Triplet {
    static constexpr auto about =
        describe("catena.triplet",
                 "loss = max(|anchor - positive|^2 - |anchor - negative|^2 + margin, 0), reduced",
                 in(Port("anchor", "vectors (N, size)"),
                    Port("positive", "vectors that should be nearer to the anchors"),
                    Port("negative", "vectors that should be farther from the anchors")),
                 out("loss"), attr("margin", 0.2, "by how much"), reduce_rows)
            .example("anchor=(3,4) positive=(3,4) negative=(3,4) margin=9")
            .example("anchor=(3,4) positive=(3,4) negative=(3,4) margin=9 reduce=\"no\"");
    static Var compose(const auto& g) {
        const double margin = margin_of(g);
        g.check_least_ndim(0, 2);
        check_same_shapes(g);
        const Var x = widened(g.x(0)), p = widened(g.x(1)), n = widened(g.x(2));
        // (x - p)^2 - (x - n)^2, where the difference of squares could be inf - inf.
        const Var difference = (n - p) * ((x - p) + (x - n));
        const Var loss = call<"catena.relu">({sum(difference, {1}) + margin});
        return in_dtype(reduced(g, loss), g.x(0).dtype());
    }
};

CATENA_FUNCTIONS(Contrastive, Triplet);

}  // namespace catena::plugins
