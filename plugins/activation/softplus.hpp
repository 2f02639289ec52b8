// Smooth rectifiers: softplus and mish.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Softplus {
    static constexpr auto about =
        describe("catena.softplus", "y = log(1 + e^(beta x)) / beta, a smooth relu", in("x"),
                 out("y"), attr("beta", 1.0, "steepness"))
            .example("x=(2,3)")
            .example("x=(4)[-6,6] beta=2")
            .example("x=()");

    static Var compose(const auto& g) {
        const double beta = g.template attr<"beta">();
        const Var b = beta * g.x(0), log = call<"catena.log1p">({math::exp(-math::abs(b))});
        return (math::max(b, 0.0) + log) / beta;
    }
    template <class T>
    CATENA_FN static T forward(T x, T beta) {
        const T b = beta * x;
        return (math::max(b, T(0)) + math::log1p(math::exp(-math::abs(b)))) / beta;
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x, T beta) {
        return gy * math::sigmoid(beta * x);
    }
};

// With w = e^x and n = w (w + 2), tanh(log(1 + w)) = n / (n + 2), which loses no digits.
struct Mish {
    static constexpr auto about = describe("catena.mish",
                                           "y = x tanh(softplus(x))\n\n"
                                           "(Misra, \"Mish: A Self Regularized Non-Monotonic "
                                           "Activation Function\", BMVC 2020.)",
                                           in("x"), out("y"))
                                      .example("x=(2,3)")
                                      .example("x=(5)[-6,6]")
                                      .example("x=()");

    // e^lowest is 0, and above `highest` tanh is 1; inf times 0 would be NaN.
    static constexpr double lowest = -1000;
    static constexpr double highest = 20;

    template <class T>
    CATENA_FN static T forward(T x) {
        const T w = math::exp(math::min(x, T(highest)));
        const T n = w * (w + T(2));
        return math::max(x, T(lowest)) * (n / (n + T(2)));
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        const T b = math::min(math::max(x, T(lowest)), T(highest));
        const T w = math::exp(b);
        const T n = w * (w + T(2));
        const T share = T(1) / (n + T(2));
        return gy * (share * (n + T(4) * b * w * (T(1) + w) * share));
    }
};

CATENA_FUNCTIONS(Softplus, Mish);

}  // namespace catena::plugins
