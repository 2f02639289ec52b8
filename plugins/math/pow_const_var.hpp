// Power with a number as base.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct PowConstVar {
    static constexpr auto about = describe("catena.pow_const_var", "y = value ^ x", in("x"),
                                           out("y"), required<double>("value", "the base"))
                                      .example("x=(2,3) value=2.5")
                                      .example("x=()[1,2] value=0.5");
    static constexpr int work = 16;  // the C library's pow

    template <class T>
    CATENA_FN static T forward(T x, T value) {
        return math::pow(value, x);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T y, T value) {
        // 0^x is 0, 1 or, for negative x, infinite. A finite log keeps gradients of gradients so.
        const auto zero = value == T(0);
        const T factor = math::log(math::where(zero, T(1e-30), value));
        return math::where(zero & (y <= T(1)), T(0), gy * y * factor);
    }
};

CATENA_FUNCTIONS(PowConstVar);

}  // namespace catena::plugins
