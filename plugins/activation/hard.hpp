// Activations of straight pieces.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct HardSigmoid {
    static constexpr auto about =
        describe("catena.hard_sigmoid",
                 "y = 0.2 x + 0.5, limited to 0 <= y <= 1\n\n"
                 "As in Chainer and Keras; PyTorch's slope is 1/6. The gradient is 0 where |x| >= "
                 "2.5.",
                 in("x"), out("y"))
            .example("x=(2,3)[-2,2]")
            .example("x=(3)[3,4]")
            .example("x=()[-4,-3]");

    template <class T>
    CATENA_FN static T forward(T x) {
        return math::min(math::max(T(0.2) * x + T(0.5), T(0)), T(1));
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        return math::where(math::abs(x) < T(2.5), T(0.2) * gy, math::unless_nan(x, T(0)));
    }
};

struct HardSwish {
    static constexpr auto about =
        describe("catena.hard_swish",
                 "y = x relu6(x + 3) / 6\n\n"
                 "The gradient is 0 where x <= -3 and 1 where x >= 3. (Howard et al., \"Searching "
                 "for MobileNetV3\", ICCV 2019.)",
                 in("x"), out("y"))
            .example("x=(2,3)[-2.5,2.5]")
            .example("x=(3)[3.5,5]")
            .example("x=()[-5,-3.5]");

    template <class T>
    CATENA_FN static T forward(T x) {
        const T b = math::max(x, T(-3));  // -inf times 0 would be NaN
        return b * (math::min(b + T(3), T(6)) * T(1.0 / 6));
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x) {
        const T b = math::min(math::max(x, T(-3)), T(3));
        const T inside = b * T(1.0 / 3) + T(0.5);
        return gy * math::where(math::abs(x) < T(3), inside,
                                math::where(x > T(0), T(1), math::unless_nan(x, T(0))));
    }
};

struct ClippedRelu {
    static constexpr auto about =
        describe("catena.clipped_relu",
                 "y = x, limited to 0 <= y <= z; the gradient is 0 at 0, at z and beyond, and NaN "
                 "at NaN",
                 in("x"), out("y"), attr("z", 20.0, "the upper limit"))
            .example("x=(2,3)[0.5,1.5]")
            .example("x=(3)[2.5,4] z=2")
            .example("x=()[-1.5,-0.5]");

    template <class T>
    CATENA_FN static T forward(T x, T z) {
        return math::min(math::max(x, T(0)), z);
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x, T z) {
        return math::where((x > T(0)) & (x < z), gy, math::unless_nan(x, T(0)));
    }
};

CATENA_FUNCTIONS(HardSigmoid, HardSwish, ClippedRelu);

}  // namespace catena::plugins
