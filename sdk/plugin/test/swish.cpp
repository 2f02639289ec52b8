// A third party's code for y = x * sigmoid(beta x). The SDK adds all dtypes, instruction sets,
// threads and orders of the gradient.
#include <catena/plugin.hpp>

using namespace catena::plugin;

struct Swish {
    static constexpr auto about = describe("org.example.swish", "y = x * sigmoid(beta * x)",
                                           in("x"), out("y"), attr("beta", 1.0, "steepness"));
    template <class T>
    CATENA_FN static T forward(T x, T beta) {
        return x * math::sigmoid(beta * x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x, T beta) {
        const T s = math::sigmoid(beta * x);
        return gy * s * (1 + beta * x * (1 - s));
    }
};

CATENA_PLUGIN("org.example.swish", "1.0.0", Swish);
