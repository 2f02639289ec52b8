// Losses of the covariances over a batch.
#pragma once

#include "reductions.hpp"

namespace catena::plugins {

inline constexpr const char* ways_of_covariance[] = {"half_squared_sum", "no", nullptr};
inline constexpr Attribute reduce_covariance =
    attr("reduce", "half_squared_sum", "half the sum of the squares, or no: the matrix")
        .one_of(ways_of_covariance);

// The matrix of y (N, size of y) and z (N, size of z).
inline Var covariance(const Var& y, const Var& z) {
    const auto centred = [](const Var& x) { return x - mean(x, {0}, true); };
    return matmul(centred(y), centred(z), true) / static_cast<double>(y.dim(0));
}

struct CrossCovariance {
    static constexpr auto about =
        describe("catena.cross_covariance",
                 "loss = the covariance of each element of y and of z over a batch, reduced",
                 in(Port("y", "(N, size of y)"), Port("z", "(N, size of z)")),
                 out(Port("loss", "(), or (size of y, size of z)")), reduce_covariance)
            .example("y=(3,2) z=(3,4)")
            .example("y=(3,2) z=(3,4) reduce=\"no\"");
    static Var compose(const auto& g) {
        g.check_ndim(0, 2);
        g.check_ndim(1, 2);
        g.check_shape(1, {g.x(0).dim(0), g.x(1).dim(1)});
        return reduced(g, covariance(g.x(0), g.x(1)));
    }
};

struct Decov {
    static constexpr auto about =
        describe(
            "catena.decov",
            "loss = the covariance of different elements of h over a batch, reduced\n\n"
            "The diagonal of the matrix is 0. (Cogswell et al., \"Reducing Overfitting in Deep "
            "Networks by Decorrelating Representations\", 2016.)",
            in(Port("h", "(N, size)")), out(Port("loss", "(), or (size, size)")), reduce_covariance)
            .example("h=(3,4)")
            .example("h=(3,4) reduce=\"no\"");
    static Var compose(const auto& g) {
        g.check_ndim(0, 2);
        const Var h = g.x(0);
        const Var diagonal =
            call<"catena.eye">({}, {set("n", h.dim(1)), set("dtype", dtype_of<bool>())});
        return reduced(g, math::where(diagonal, 0.0, covariance(h, h)));
    }
};

CATENA_FUNCTIONS(CrossCovariance, Decov);

}  // namespace catena::plugins
