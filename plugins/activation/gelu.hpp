// Gaussian error linear units.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// The two formulas, of which an attribute selects one. Beyond a limit y is 0 or x, and its
// derivative 0 or 1: factors are limited because inf times 0 would be NaN.
struct GeluExact {
    static constexpr auto about = describe("catena.gelu", "", in("x"), out("y"));
    static constexpr double share = 0.39894228040143267794;  // 1 / sqrt(2 pi)
    static constexpr double limit = 40;

    template <class T>
    CATENA_FN static T forward(T x) {
        const auto [a, density, lower] = math::normal(x);
        return (x > T(0) ? x : T(0)) - a * lower;
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        if constexpr (std::floating_point<T>) {
            const auto [a, density, lower] = math::normal(x);
            const T below = lower - T(share) * a * density;  // the derivative at -a
            return gy * (x > T(0) ? T(1) - below : below);
        } else {
            constexpr double root_half = 0.70710678118654752440;
            const T b = math::min(math::max(x, T(-limit)), T(limit));
            const T cdf = T(0.5) * (T(1) + math::erf(T(root_half) * b));
            return gy * (cdf + b * (T(share) * math::exp(T(-0.5) * b * b)));
        }
    }
};

// (1 + tanh(u)) / 2 = sigmoid(2 u), with u = sqrt(2 / pi) (x + cubic x^3).
struct GeluTanh {
    static constexpr auto about = describe("catena.gelu", "", in("x"), out("y"));
    static constexpr double limit = 40;
    static constexpr double factor = 2 * 0.79788456080286535588;
    static constexpr double cubic = 0.044715;

    template <class T>
    CATENA_FN static T forward(T x) {
        const T b = math::min(math::max(x, T(-limit)), T(limit));
        return math::max(x, T(-limit)) * math::sigmoid(T(factor) * b * (T(1) + T(cubic) * b * b));
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        const T b = math::min(math::max(x, T(-limit)), T(limit));
        const T square = T(cubic) * b * b;
        const T s = math::sigmoid(T(factor) * b * (T(1) + square));
        return gy * (s * (T(1) + b * (T(1) - s) * (T(factor) * (T(1) + T(3) * square))));
    }
};

struct Gelu {
    static constexpr const char* kinds[] = {"none", "tanh", nullptr};
    static constexpr auto about =
        describe("catena.gelu",
                 "y = x P(X < x) for a standard normal X\n\n"
                 "approximate=tanh is x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2. (Hendrycks "
                 "and Gimpel, \"Gaussian Error Linear Units\", 2016.)",
                 in("x"), out("y"),
                 attr("approximate", "none", "none: exact; tanh: the approximation").one_of(kinds))
            .with(CATENA_FUNCTION_ELEMENTWISE)
            .example("x=(2,3)")
            .example("x=(5)[-5,5]")
            .example("x=() approximate=\"tanh\"")
            .example("x=(5)[-5,5] approximate=\"tanh\"");
    static constexpr auto retain_x = ports(0);

    static void infer(const auto& s) { s.y(0, s.x(0)); }
    static void gradient(const auto& g) {
        with_formula(g, [&]<class Formula>(Formula) {
            g.gx(0, Formula::template backward<Var>(g.gy(0), g.x(0)));
        });
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        constexpr Isa isa = std::remove_reference_t<decltype(call)>::isa;
        with_formula(call, [&]<class Formula>(Formula) {
            check_status(forward_elementwise<Formula, T, isa, false>(call.context(), &call.raw()));
        });
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        constexpr Isa isa = std::remove_reference_t<decltype(call)>::isa;
        with_formula(call, [&]<class Formula>(Formula) {
            check_status(backward_elementwise<Formula, T, isa, false>(call.context(), &call.raw()));
        });
    }

    // Calls body with the formula that the call's attribute selects.
    static void with_formula(const auto& call, const auto& body) {
        if (call.template attr<"approximate">() == "tanh") body(GeluTanh());
        else body(GeluExact());
    }
};

CATENA_FUNCTIONS(Gelu);

}  // namespace catena::plugins
