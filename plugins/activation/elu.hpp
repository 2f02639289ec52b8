// Exponential linear units.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Elu {
    static constexpr auto about =
        describe("catena.elu",
                 "y = scale x where x > 0, else scale alpha (e^(input_scale x) - 1)\n\n"
                 "The gradient at 0 is that of x < 0. (Clevert, Unterthiner and Hochreiter, \"Fast "
                 "and Accurate Deep Network Learning by Exponential Linear Units\", ICLR 2016.)",
                 in("x"), out("y"), attr("alpha", 1.0, "-y for x to -infinity, with scale 1"),
                 attr("scale", 1.0, "a factor of y"),
                 attr("input_scale", 1.0, "a factor of x where x <= 0"))
            .example("x=(2,3)[0.5,1.5]")
            .example("x=(2,3)[-4,-0.5] alpha=0.5")
            .example("x=()[-1.5,-0.5] alpha=2 scale=0.5 input_scale=0.25");

    template <class T>
    CATENA_FN static T forward(T x, T alpha, T scale, T input_scale) {
        return scale * math::where(x > T(0), x, alpha * math::expm1(input_scale * x));
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x, T alpha, T scale, T input_scale) {
        // e^x of a large x would be infinite: gradients of gradients multiply it by 0.
        const T below = alpha * input_scale * math::exp(input_scale * math::min(x, T(0)));
        return scale * gy * math::where(x > T(0), T(1), below);
    }
};

CATENA_FUNCTIONS(Elu);

}  // namespace catena::plugins
