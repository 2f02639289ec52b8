// Arithmetic of an array and a number.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

constexpr auto with_constant(const char* name, const char* doc, const char* about_value) {
    return describe(name, doc, in("x"), out("y"), required<double>("value", about_value));
}

struct AddConstant {
    static constexpr auto about =
        with_constant("catena.add_constant", "y = x + value", "the number added")
            .example("x=(2,3) value=0.5")
            .example("x=() value=-2");
    using types = Numbers;

    template <class T>
    CATENA_FN static T forward(T x, T value) {
        return x + value;
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T) {
        return gy;
    }
};

struct SubFromConstant {
    static constexpr auto about =
        with_constant("catena.sub_from_constant", "y = value - x", "the number subtracted from")
            .example("x=(2,3) value=2.5")
            .example("x=() value=-0.5")
            .example("x=(3) value=3");
    using types = Numbers;

    template <class T>
    CATENA_FN static T forward(T x, T value) {
        return value - x;
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T) {
        return -gy;
    }
};

struct MulConstant {
    static constexpr auto about =
        with_constant("catena.mul_constant", "y = value * x", "the factor")
            .example("x=(2,3) value=2.5")
            .example("x=() value=-0.5")
            .example("x=(3) value=3");
    using types = Numbers;

    template <class T>
    CATENA_FN static T forward(T x, T value) {
        return value * x;
    }
    template <class T>
    CATENA_FN static T backward(T gy, T, T value) {
        return value * gy;
    }
};

struct DivFromConstant {
    static constexpr auto about =
        with_constant("catena.div_from_constant", "y = value / x", "the dividend")
            .example("x=(2,3)[0.5,1.5] value=2.5")
            .example("x=(3)[-1.5,-0.5] value=-1")
            .example("x=()[0.5,1.5] value=1");

    template <class T>
    CATENA_FN static T forward(T x, T value) {
        return value / x;
    }
    template <class T>
    CATENA_FN static T backward(T gy, T x, T y, T) {
        return -gy * y / x;
    }
};

CATENA_FUNCTIONS(AddConstant, SubFromConstant, MulConstant, DivFromConstant);

}  // namespace catena::plugins
