// Activations with learned numbers: prelu and swish.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// Input 1, which has the extents of x from axis 1 on or is 0-d, with axes that broadcast to x.
Var beside(const auto& g, const char* what) {
    const Meta x = g.x_meta(0), own = g.x_meta(1);
    const Shape from = own.shape();
    g.check(from.empty() ||
                (own.ndim < x.ndim && std::ranges::equal(from, x.shape().subspan(1, from.size()))),
            what, "the extents of x " + text_of(x.shape()) + " from axis 1 on, or ()", from);
    List wide(from.empty() ? 0 : x.shape().size(), 1);
    std::ranges::copy(from, wide.begin() + (from.empty() ? 0 : 1));
    return reshape(g.x(1), wide);
}

struct BroadcastPrelu {
    static constexpr auto about =
        describe("catena.broadcast_prelu", "y = x where x >= 0, else slope * x", in("x", "slope"),
                 out("y"))
            .internal()
            .example("x=(2,3)[0.5,1.5] slope=()")
            .example("x=(2,3)[-1.5,-0.5] slope=(2,1)");

    template <class T>
    CATENA_FN static T forward(T x, T slope) {
        return math::where(x >= T(0), x, x * slope);
    }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T x, T slope) {
        return {math::where(x >= T(0), gy, math::unless_nan(x, gy * slope)),
                math::where(x >= T(0), T(0), gy * x)};
    }
};
struct Prelu {
    static constexpr auto about =
        describe(
            "catena.prelu",
            "y = x where x >= 0, else W * x; the gradient is 1 at 0 and NaN at NaN\n\n"
            "W has a slope for each element of the axes of x that follow the first; a 0-d W is "
            "one slope for all. (He et al., \"Delving Deep into Rectifiers\", 2015.)",
            in(Port("x", "(N, ...)"), Port("W", "slopes; shaped as x from axis 1 on")), out("y"))
            .example("x=(2,3)[0.5,1.5] W=()")
            .example("x=(2,3)[-1.5,-0.5] W=(3)")
            .example("x=(2,3,4)[-1.5,-0.5] W=(3)")
            .example("x=(2,3,2)[-1.5,-0.5] W=(3,2)");
    static Var compose(const auto& g) {
        return call<"catena.broadcast_prelu">({g.x(0), beside(g, "W.shape")});
    }
};

struct Swish {
    static constexpr auto about =
        describe(
            "catena.swish", "y = x sigmoid(beta x)",
            in("x", Port("beta", "the extents of x from axis 1 on, or the first of them, or ()")),
            out("y"))
            .promotes()
            .example("x=(2,3) beta=(3)")
            .example("x=(2,3,2) beta=(3)")
            .example("x=(2) beta=()");
    static Var compose(const auto& g) {
        return g.x(0) * math::sigmoid(g.x(0) * beside(g, "beta.shape"));
    }
};

CATENA_FUNCTIONS(BroadcastPrelu, Prelu, Swish);

}  // namespace catena::plugins
