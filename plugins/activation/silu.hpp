// x * sigmoid(x), alone and as the gate of a product.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Silu {
    static constexpr auto about =
        describe("catena.silu",
                 "y = x sigmoid(x), also called swish\n\n"
                 "(Hendrycks and Gimpel, 2016; Ramachandran, Zoph and Le, 2017.)",
                 in("x"), out("y"))
            .example("x=(2,3)")
            .example("x=(5)[-6,6]")
            .example("x=()");

    // Beyond the limit, sigmoid is 0 or 1; inf times 0 would be NaN.
    static constexpr double limit = 1000;

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::max(x, T(-limit)) * math::sigmoid(x);
    }
    CATENA_FN static auto backward(auto gy, auto x) { return gy * slope(x, math::sigmoid(x)); }
    // The derivative, where s is sigmoid(x).
    template <class T>
    CATENA_FN static T slope(T x, T s) {
        const T b = math::min(math::max(x, T(-limit)), T(limit));
        return s * (T(1) + b * (T(1) - s));
    }
};

struct Swiglu {
    static constexpr auto about =
        describe("catena.swiglu",
                 "y = silu(a) b: a gated linear unit with silu as its gate\n\n"
                 "(Shazeer, \"GLU Variants Improve Transformer\", 2020.)",
                 in("a", "b"), out("y"))
            .example("a=(2,3) b=(2,3)")
            .example("a=(2,1)[-3,3] b=(1,3)")
            .example("a=() b=(3)");

    static Var compose(const auto& g) { return call<"catena.silu">({g.x(0)}) * g.x(1); }
    CATENA_FN static auto forward(auto a, auto b) { return Silu::forward(a) * b; }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T a, T b) {
        const T s = math::sigmoid(a);
        return {gy * b * Silu::slope(a, s), gy * (math::max(a, T(-Silu::limit)) * s)};
    }
};

CATENA_FUNCTIONS(Silu, Swiglu);

}  // namespace catena::plugins
