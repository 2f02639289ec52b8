// Losses of single elements.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct BceWithLogits {
    static constexpr auto about =
        describe("catena.bce_with_logits",
                 "y = -(t log p + (1 - t) log(1 - p)) with p = sigmoid(x)\n\n"
                 "The binary cross entropy of scores x and probabilities t, for each element. It "
                 "does not overflow, and is exact for large scores.",
                 in("x", "t"), out("y"))
            .example("x=(2,3)[-4,4] t=(2,3)[0,1]")
            .example("x=(2,1)[0.5,2] t=(1,3)[0,1]")
            .example("x=()[-2,-0.5] t=()[0,1]");

    template <class T>
    CATENA_FN static T forward(T x, T t) {
        const T u = math::exp(-math::abs(x));
        const T w = T(1) + u;
        // max(x, 0) - x t without inf - inf, and log(1 + u), of which the last term is what rounding
        // took from w.
        return x * (math::where(x >= T(0), T(1), T(0)) - t) + (math::log(w) + (u - (w - T(1))) / w);
    }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T x, T t) {
        return {gy * (math::sigmoid(x) - t), -(gy * x)};
    }
};

struct Huber {
    static constexpr auto about =
        describe("catena.huber",
                 "y = d^2 / 2 for d = x0 - x1 if |d| <= delta, else delta (|d| - delta / 2)\n\n"
                 "The Huber loss of each element; huber_loss() sums it.",
                 in("x0", "x1"), out("y"),
                 attr("delta", 1.0, "where the slope stops growing").range(0, 1e300))
            .example("x0=(2,3)[0.1,0.4] x1=(2,3)[-0.4,-0.1]")
            .example("x0=(2,1)[1,2] x1=(1,3)[-2,-1] delta=0.5")
            .example("x0=()[-2,-1] x1=()[1,2]");

    template <class T>
    CATENA_FN static T forward(T x0, T x1, T delta) {
        const T a = math::abs(x0 - x1);
        const T q = math::min(a, delta);
        return q * (a - T(0.5) * q);
    }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T x0, T x1, T delta) {
        const T g = gy * math::max(math::min(x0 - x1, delta), -delta);
        return {g, -g};
    }
};

CATENA_FUNCTIONS(BceWithLogits, Huber);

}  // namespace catena::plugins
