// Power of two arrays.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Pow {
    static constexpr auto about = describe("catena.pow",
                                           "y = x0 ^ x1\n\n"
                                           "If x0 is 0, the gradient of x0 is 0 if x1 is 0, and "
                                           "that of x1 is 0 if x1 is not negative.",
                                           in("x0", "x1"), out("y"))
                                      .example("x0=(2,3)[0.5,2] x1=(2,3)")
                                      .example("x0=(2,1)[0.5,2] x1=(1,3)[1,2]")
                                      .example("x0=()[0.5,2] x1=(3)");
    static constexpr int work = 16;  // the C library's pow

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        return math::pow(x0, x1);
    }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T x0, T x1, T y) {
        // What is not chosen is finite as well, lest gradients of gradients get 0 * inf of it.
        const auto base = x0 == T(0);
        const auto none = base & (x1 == T(0));
        const auto flat = base & (x1 >= T(0));
        const T n = math::where(none, T(1), x1);
        return {math::where(none, T(0), gy * n * math::pow(x0, n - T(1))),
                math::where(flat, T(0), gy * y * math::log(math::where(flat, T(1), x0)))};
    }
};

CATENA_FUNCTIONS(Pow);

}  // namespace catena::plugins
