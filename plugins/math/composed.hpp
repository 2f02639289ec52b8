// Arithmetic that is a composition.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct SquaredDifference {
    static constexpr auto about =
        describe("catena.squared_difference", "y = (x1 - x2)^2", in("x1", "x2"), out("y"))
            .promotes()
            .example("x1=(2,3) x2=(2,3)");
    static Var compose(const auto& g) {
        g.check_shape(1, g.x_meta(0).shape());
        const Var d = g.x(0) - g.x(1);
        return d * d;
    }
};

struct LinearInterpolate {
    static constexpr auto about =
        describe("catena.linear_interpolate", "f = p x + (1 - p) y", in("p", "x", "y"), out("f"))
            .promotes()
            .example("p=(2,3)[0,1] x=(2,3) y=(2,3)");
    static Var compose(const auto& g) { return g.x(0) * g.x(1) + (1.0 - g.x(0)) * g.x(2); }
};

// y with axes of length 1 such that its own begin at an axis of x.
Var aligned(const auto& g) {
    const Meta x = g.x_meta(0), y = g.x_meta(1);
    const std::int64_t axis = g.template attr<"axis">();
    g.check(axis >= 0 && axis <= x.ndim - y.ndim, "axis",
            "one of x " + text_of(x.shape()) + " from which on it has the axes of y " +
                text_of(y.shape()),
            axis);
    List shape(x.shape().size(), 1);
    std::ranges::copy(y.shape(), shape.begin() + axis);
    return reshape(g.x(1), shape);
}
constexpr auto of_axes(const char* name, const char* doc) {
    return describe(name, doc, in("x", "y"), out("z"),
                    attr("axis", 1, "the axis of x at which those of y begin"))
        .promotes()
        .example("x=(2,3,2) y=(3)")
        .example("x=(2,3) y=(2,3) axis=0");
}
struct Bias {
    static constexpr auto about =
        of_axes("catena.bias", "z = x + y, where the axes of y are those of x from an axis on");
    static Var compose(const auto& g) { return g.x(0) + aligned(g); }
};
struct Scale {
    static constexpr auto about =
        of_axes("catena.scale", "z = x y, where the axes of y are those of x from an axis on");
    static Var compose(const auto& g) { return g.x(0) * aligned(g); }
};

struct BatchL2NormSquared {
    static constexpr auto about =
        describe("catena.batch_l2_norm_squared", "y[i] = the sum of the squares of x[i]",
                 in(Port("x", "(N, ...)")), out(Port("y", "(N)")))
            .example("x=(2,3,2)");
    static Var compose(const auto& g) {
        g.check_least_ndim(0, 2);
        List axes;
        for (std::int64_t d = 1; d < g.x(0).ndim(); ++d) axes.push_back(d);
        return sum(g.x(0) * g.x(0), axes);
    }
};

CATENA_FUNCTIONS(SquaredDifference, LinearInterpolate, Bias, Scale, BatchL2NormSquared);

}  // namespace catena::plugins
