// Power with a number as exponent.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct PowVarConst {
    static constexpr auto about = describe("catena.pow_var_const", "y = x ^ value", in("x"),
                                           out("y"), required<double>("value", "the exponent"))
                                      .example("x=(2,3)[0.5,1.5] value=2.5")
                                      .example("x=(2,3)[-1.5,-0.5] value=3")
                                      .example("x=()[0.5,1.5] value=-1");
    static constexpr int work = 16;  // the C library's pow

    template <class T>
    CATENA_FN static T forward(T x, T value) {
        return math::pow(x, value);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x, T value) {
        const auto none = value == T(0);  // 0 times x^-1 is NaN at 0
        return gy * value * math::pow(x, value - math::where(none, T(0), T(1)));
    }
};

CATENA_FUNCTIONS(PowVarConst);

}  // namespace catena::plugins
