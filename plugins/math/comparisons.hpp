// Elementwise comparisons, maximum, minimum and where.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

constexpr auto comparison(const char* name, const char* doc, const Port& y = Port("y")) {
    return describe(name, doc, in("x0", "x1"), out(y))
        .not_differentiable()
        .internal()
        .example("x0=(2,3) x1=(2,3)")
        .example("x0=(2,1) x1=(1,3)")
        .example("x0=(3)[1,1] x1=()[1,1]");
}

// What holds between two numbers.
enum Relation : unsigned { less = 1, equal = 2, greater = 4, unordered = 8 };

// For formulas of gradients, in which all values have one dtype. y = 1 if one of the relations holds.
template <unsigned relations>
struct Comparison {
    using types = Numbers;
    static constexpr unsigned relation = relations;

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        return math::where(compare(x0, x1), T(1), T(0));
    }

private:
    CATENA_FN static bool compare(auto x0, auto x1) {
        if constexpr (relations == equal) return x0 == x1;
        else if constexpr (relations == greater) return x0 > x1;
        else if constexpr (relations == (greater | equal)) return x0 >= x1;
        else {
            static_assert(relations == (less | greater | unordered));
            return x0 != x1;
        }
    }
};

struct Equal : Comparison<equal> {
    static constexpr auto about =
        comparison("catena.equal", "y = 1 where x0 equals x1, else 0, in the inputs' dtype");
};
struct Greater : Comparison<greater> {
    static constexpr auto about =
        comparison("catena.greater", "y = 1 where x0 > x1, else 0, in the inputs' dtype");
};
struct GreaterEqual : Comparison<greater | equal> {
    static constexpr auto about =
        comparison("catena.greater_equal", "y = 1 where x0 >= x1, else 0, in the inputs' dtype");
};

// For the host's comparisons, which return bool.
constexpr auto test(const char* name, const char* doc) {
    return comparison(name, doc, Port("y").of("B"));
}
template <unsigned relations>
struct Test : Comparison<relations> {
    using types = Rows<Row<float, bool>, Row<double, bool>, Row<std::int32_t, bool>,
                       Row<std::int64_t, bool>, Row<bool, bool>>;
};

struct IsEqual : Test<equal> {
    static constexpr auto about = test("catena.is_equal", "y = x0 == x1, bool");
};
struct IsNotEqual : Test<less | greater | unordered> {
    static constexpr auto about = test("catena.is_not_equal", "y = x0 != x1, bool");
};
struct IsGreater : Test<greater> {
    static constexpr auto about = test("catena.is_greater", "y = x0 > x1, bool");
};
struct IsGreaterEqual : Test<greater | equal> {
    static constexpr auto about = test("catena.is_greater_equal", "y = x0 >= x1, bool");
};

struct Invert {
    static constexpr auto about = describe("catena.invert", "y = not x", in("x"), out("y"))
                                      .not_differentiable()
                                      .internal()
                                      .example("x=(2,3)");
    using types = Rows<Row<bool>>;

    template <class T>
    CATENA_FN static T forward(T x) {
        return static_cast<T>(x ^ 1);
    }
};

constexpr auto extreme(const char* name, const char* doc) {
    return describe(name, doc, in("x0", "x1"), out("y"))
        .internal()  // the host's function promotes dtypes
        .example("x0=(2,3)[0.5,1.5] x1=(2,3)[-1.5,-0.5]")
        .example("x0=(3)[-1.5,-0.5] x1=(2,3)[0.5,1.5]")
        .example("x0=(2,1)[-1.5,-0.5] x1=(1,3)[0.5,1.5]")
        .example("x0=()[0.5,1.5] x1=(2)[-1.5,-0.5]");
}
// Returns the gradient of the input that is not chosen: 0, or NaN if either input is NaN.
template <class T>
CATENA_FN T zero_unless_nan(T x0, T x1) {
    return math::unless_nan(x0, math::unless_nan(x1, T(0)));
}

template <bool largest>
struct ExtremeOfTwo {
    using types = decltype(Numbers() + Rows<Row<bool>>());

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        return largest ? math::max(x0, x1) : math::min(x0, x1);
    }
    template <class T>
    CATENA_FN static Grads<T, 2> backward(T gy, T x0, T x1) {
        const T other = zero_unless_nan(x0, x1);
        return {math::where(largest ? x0 >= x1 : x0 <= x1, gy, other),
                math::where(largest ? x0 < x1 : x0 > x1, gy, other)};
    }
};
struct Maximum : ExtremeOfTwo<true> {
    static constexpr auto about =
        extreme("catena.maximum",
                "y = the larger of x0 and x1. If one is NaN, y and both gradients are NaN. If "
                "they are equal, x0 gets the gradient");
};
struct Minimum : ExtremeOfTwo<false> {
    static constexpr auto about =
        extreme("catena.minimum",
                "y = the smaller of x0 and x1. If one is NaN, y and both gradients are NaN. If "
                "they are equal, x0 gets the gradient");
};

struct Where {
    static constexpr auto about =
        describe("catena.where", "y = x0 where condition is not 0, else x1",
                 in(Port("condition", "bool, or the dtype of x0").of("C").not_differentiable(),
                    "x0", "x1"),
                 out("y"))
            .since(2)
            .internal()  // the host's function promotes dtypes
            .example("condition=(2,3)[0,0] x0=(2,3) x1=(2,3)")
            .example("condition=(2,3) x0=(3) x1=(2,1)")
            .example("condition=() x0=(2,3) x1=(2,3)")
            .example("condition=(2,3)[0,0] x0=() x1=(3)");
    using types = Rows<Row<float, float>, Row<double, double>, Row<std::int32_t, std::int32_t>,
                       Row<std::int64_t, std::int64_t>, Row<bool, float>, Row<bool, double>,
                       Row<bool, std::int32_t>, Row<bool, std::int64_t>, Row<bool, std::uint8_t>,
                       Row<bool, bool>>;
    static constexpr unsigned widened = 0b11;

    template <class T>
    CATENA_FN static T forward(T condition, T x0, T x1) {
        if constexpr (std::is_same_v<T, std::uint8_t>)  // math has no unsigned numbers
            return condition == T(0) ? x1 : x0;
        else return math::where(condition == T(0), x1, x0);
    }
    template <class T>
    CATENA_FN static Grads<T, 3> backward(T gy, T condition, T, T) {
        return {T(0), math::where(condition, gy, T(0)), math::where(condition, T(0), gy)};
    }
};

CATENA_FUNCTIONS(Equal, Greater, GreaterEqual, IsEqual, IsNotEqual, IsGreater, IsGreaterEqual,
                 Invert, Maximum, Minimum, Where);

}  // namespace catena::plugins
