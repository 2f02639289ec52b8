// A third-party plugin for benchmarks: swish, a sigmoid that must be as fast as the built-in one,
// whose formula it has, and a composition of six calls.
#include <catena/plugin.hpp>

using namespace catena::plugin;

struct Sigmoid {
    static constexpr auto about =
        describe("org.example.sigmoid", "y = 1 / (1 + exp(-x))", in("x"), out("y"));
    template <class T>
    CATENA_FN static T forward(T x) {
        return math::sigmoid(x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T y) {
        return gy * y * (1 - y);
    }
};

struct Swish {
    static constexpr auto about =
        describe("org.example.fixed_swish", "y = x / (1 + exp(-x))", in("x"), out("y"));
    template <class T>
    CATENA_FN static T forward(T x) {
        return x * math::sigmoid(x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        const T s = math::sigmoid(x);
        return gy * s * (1 + x * (1 - s));
    }
};

struct SixCalls {
    static constexpr auto about =
        describe("org.example.six_calls", "y = tanh(exp(sin x) cos x + x)", in("x"), out("y"))
            .example("x=(2,3)");
    static Var compose(const auto& g) {
        const Var x = g.x(0);
        return math::tanh(math::exp(math::sin(x)) * math::cos(x) + x);
    }
};

CATENA_PLUGIN("org.example.third_party", "1.0.0", Sigmoid, Swish, SixCalls);
