// Arithmetic of arrays, and of an array and a number.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

constexpr auto arithmetic(const char* name, const char* doc) {
    return describe(name, doc, in("x0", "x1"), out("y"))
        .example("x0=(2,3) x1=(2,3)")
        .example("x0=(2,3) x1=(3)")
        .example("x0=(2,1) x1=(1,3)")
        .example("x0=() x1=(2,3)");
}

struct Add {
    static constexpr auto about =
        arithmetic("catena.add", "y = x0 + x1").with(CATENA_FUNCTION_ADDITION);
    using types = Numbers;

    CATENA_FN static auto forward(auto x0, auto x1) { return x0 + x1; }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T, T) {
        return {gy, gy};
    }
};

struct Sub {
    static constexpr auto about = arithmetic("catena.sub", "y = x0 - x1");
    using types = Numbers;

    CATENA_FN static auto forward(auto x0, auto x1) { return x0 - x1; }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T, T) {
        return {gy, -gy};
    }
};

struct Mul {
    static constexpr auto about = arithmetic("catena.mul", "y = x0 * x1, element by element");
    using types = Numbers;

    CATENA_FN static auto forward(auto x0, auto x1) { return x0 * x1; }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T x0, T x1) {
        return {gy * x1, gy * x0};
    }
};

struct Div {
    static constexpr auto about = describe("catena.div", "y = x0 / x1", in("x0", "x1"), out("y"))
                                      .example("x0=(2,3) x1=(2,3)[0.5,1.5]")
                                      .example("x0=(2,3) x1=(3)[-1.5,-0.5]")
                                      .example("x0=(2,1) x1=(1,3)[0.5,1.5]")
                                      .example("x0=(2,3) x1=()[-1.5,-0.5]");

    CATENA_FN static auto forward(auto x0, auto x1) { return x0 / x1; }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T x0, T x1) {
        const T g0 = gy / x1;
        return {g0, -g0 * x0 / x1};
    }
};

struct Neg {
    static constexpr auto about =
        describe("catena.neg", "y = -x", in("x"), out("y")).example("x=(2,3)").example("x=()");
    using types = Numbers;

    CATENA_FN static auto forward(auto x) { return -x; }
    CATENA_FN static auto backward(auto gy, auto) { return -gy; }
};

constexpr auto with_constant(const char* name, const char* doc, const char* about_value) {
    return describe(name, doc, in("x"), out("y"), required<double>("value", about_value));
}

struct AddConstant {
    static constexpr auto about =
        with_constant("catena.add_constant", "y = x + value", "the number added")
            .example("x=(2,3) value=0.5")
            .example("x=() value=-2");
    using types = Numbers;

    CATENA_FN static auto forward(auto x, auto value) { return x + value; }
    CATENA_FN static auto backward(auto gy, auto, auto) { return gy; }
};

struct SubFromConstant {
    static constexpr auto about =
        with_constant("catena.sub_from_constant", "y = value - x", "the number subtracted from")
            .example("x=(2,3) value=2.5")
            .example("x=() value=-0.5")
            .example("x=(3) value=3");
    using types = Numbers;

    CATENA_FN static auto forward(auto x, auto value) { return value - x; }
    CATENA_FN static auto backward(auto gy, auto, auto) { return -gy; }
};

struct MulConstant {
    static constexpr auto about =
        with_constant("catena.mul_constant", "y = value * x", "the factor")
            .example("x=(2,3) value=2.5")
            .example("x=() value=-0.5")
            .example("x=(3) value=3");
    using types = Numbers;

    CATENA_FN static auto forward(auto x, auto value) { return value * x; }
    CATENA_FN static auto backward(auto gy, auto, auto value) { return value * gy; }
};

struct DivFromConstant {
    static constexpr auto about =
        with_constant("catena.div_from_constant", "y = value / x", "the dividend")
            .example("x=(2,3)[0.5,1.5] value=2.5")
            .example("x=(3)[-1.5,-0.5] value=-1")
            .example("x=()[0.5,1.5] value=1");

    CATENA_FN static auto forward(auto x, auto value) { return value / x; }
    CATENA_FN static auto backward(auto gy, auto x, auto y, auto) { return -gy * y / x; }
};

CATENA_FUNCTIONS(Add, Sub, Mul, Div, Neg, AddConstant, SubFromConstant, MulConstant,
                 DivFromConstant);

}  // namespace catena::plugins
