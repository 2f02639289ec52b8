// softplus: an elementwise function is two formulas.
#include <catena/plugin.hpp>

using namespace catena::plugin;

struct Softplus {
    static constexpr auto about =
        describe("org.example.softplus", "y = log(1 + e^(beta x)) / beta, a smooth relu", in("x"),
                 out("y"), attr("beta", 1.0, "sharpness of the bend").range(1e-3, 1e3))
            .example("x=(2,3)")
            .example("x=(4)[-3,3] beta=2");

    template <class T>
    CATENA_FN static T forward(T x, T beta) {
        const T rest = math::log(1 + math::exp(-beta * math::abs(x)));  // never overflows
        return math::max(x, T(0)) + rest / beta;
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x, T beta) {
        return gy * math::sigmoid(beta * x);
    }
};

CATENA_PLUGIN("org.example.softplus", "1.0.0", Softplus);
