// Arithmetic of arrays.
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

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        return x0 + x1;
    }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T, T) {
        return {gy, gy};
    }
};

struct Sub {
    static constexpr auto about = arithmetic("catena.sub", "y = x0 - x1");
    using types = Numbers;

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        return x0 - x1;
    }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T, T) {
        return {gy, -gy};
    }
};

struct Mul {
    static constexpr auto about = arithmetic("catena.mul", "y = x0 * x1, element by element");
    using types = Numbers;

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        return x0 * x1;
    }
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

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        return x0 / x1;
    }
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

    template <class T>
    CATENA_FN static T forward(T x) {
        return -x;
    }
    template <class T>
    CATENA_FN static T backward(T gy, T) {
        return -gy;
    }
};

CATENA_FUNCTIONS(Add, Sub, Mul, Div, Neg);

}  // namespace catena::plugins
