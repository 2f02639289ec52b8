// A function with a wrong gradient, which catena::testing must find.
#include <catena/plugin.hpp>

using namespace catena::plugin;

struct Wrong {
    static constexpr auto about = describe("org.example.wrong", "y = x^2", in("x"), out("y"));
    template <class T>
    CATENA_FN static T forward(T x) {
        return x * x;
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        return gy * x * 3;
    }
};

CATENA_PLUGIN("org.example.wrong", "1.0.0", Wrong);
