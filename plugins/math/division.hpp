// Remainders and quotients as integers, computed exactly.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

namespace own {

// C's fmod and % with the sign of x; of integers, 0 if the divisor is 0.
template <math::Number T>
CATENA_FN T remainder(T x, T divisor) {
    if constexpr (std::is_integral_v<T>) {
        return divisor == 0 || divisor == -1 ? T(0) : static_cast<T>(x % divisor);
    } else {
#if defined(__CUDA_ARCH__)
        return ::fmod(x, divisor);
#else
        return std::fmod(x, divisor);
#endif
    }
}
// The integer next to x. (x + 0.5 may round to another one.)
template <math::Number T>
CATENA_FN T nearest(T x) {
    const T y = math::floor(x);
    return y + math::where(x - y > T(0.5), T(1), T(0));
}
constexpr Probe nearest(Probe x) { return x; }
inline Var nearest(const Var& x) {
    const Var y = call<"catena.floor">({x});
    return y + (x - y > 0.5);
}

}  // namespace own

struct Fmod {
    static constexpr auto about =
        describe("catena.fmod",
                 "y = the remainder of x / divisor, with the sign of x\n\n"
                 "It is exact, as C's fmod. With the divisor 0, it is NaN, or 0 for integers.",
                 in("x", "divisor"), out("y"))
            .example("x=(2,3)[-0.4,0.4] divisor=(2,3)[0.5,0.9]")
            .example("x=(3)[3.5,3.9] divisor=(2,1)[-0.55,-0.52]")
            .example("x=()[-1.2,-1.1] divisor=(2)[0.8,0.9]");
    using types = Numbers;
    static constexpr int work = 16;  // cost of the C library's fmod

    CATENA_FN static auto forward(auto x, auto divisor) { return own::remainder(x, divisor); }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T x, T divisor, T y) {
        return {gy, -gy * own::nearest((x - y) / divisor)};
    }
};

struct FloorDivide {
    static constexpr auto about =
        describe("catena.floor_divide",
                 "y = the largest integer not above x0 / x1\n\n"
                 "The quotient is not rounded before, as in NumPy. Division by 0 gives inf or NaN, "
                 "or 0 for integers.",
                 in("x0", "x1"), out("y"))
            .not_differentiable()
            .internal()  // the host's function promotes dtypes
            .example("x0=(2,3)[-9,9] x1=(2,3)[0.5,1.5]")
            .example("x0=(2,1) x1=(1,3)[-1.5,-0.5]")
            .example("x0=()[5,9] x1=(2)[1,2]");
    using types = Numbers;
    static constexpr int work = 16;

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        const T rest = own::remainder(x0, x1);
        const bool below = rest != T(0) && (rest < T(0)) != (x1 < T(0));
        if constexpr (std::is_integral_v<T>) {
            if (x1 == 0) return 0;
            // The division of the least integer traps, and its negation overflows.
            if (x1 == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x0));
            return static_cast<T>(x0 / x1 - (below ? 1 : 0));
        } else {
            if (x1 == T(0)) return x0 / x1;
            const T y = own::nearest((x0 - rest) / x1);
            return below ? y - T(1) : y == T(0) ? x0 / x1 * T(0) : y;
        }
    }
};

CATENA_FUNCTIONS(Fmod, FloorDivide);

}  // namespace catena::plugins
