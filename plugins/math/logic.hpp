// Logic of arrays of any dtype. Numbers other than 0 are true, NaN too.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/precision.hpp>

#include <limits>

namespace catena::plugins {

using namespace catena::plugin;

inline Var is_equal(const Var& a, const Var& b) { return call<"catena.is_equal">({a, b}); }
inline Var is_not_equal(const Var& a, const Var& b) { return call<"catena.is_not_equal">({a, b}); }
inline Var both(const Var& a, const Var& b) { return call<"catena.minimum">({a, b}); }
inline Var either(const Var& a, const Var& b) { return call<"catena.maximum">({a, b}); }

inline Var truth(const Var& x) { return cast(x, dtype_of<bool>()); }
// x in a dtype that has arithmetic and comparisons.
inline Var comparable(const Var& x) {
    const bool is_small = x.dtype().bits == 8;
    return is_small ? cast(x, dtype_of<std::int32_t>()) : x;
}

constexpr auto logic_of_two(const char* name, const char* doc) {
    return describe(name, doc, in(Port("x0").of("A"), Port("x1").of("B")), out(Port("y").of("Y")))
        .not_differentiable()
        .example("x0=(2,3)[0,0] x1=(2,3)")
        .example("x0=(2,1) x1=(1,3)[0,0]");
}
struct LogicalAnd {
    static constexpr auto about =
        logic_of_two("catena.logical_and", "y = whether x0 and x1 are not 0, bool");
    static Var compose(const auto& g) { return both(truth(g.x(0)), truth(g.x(1))); }
};
struct LogicalOr {
    static constexpr auto about =
        logic_of_two("catena.logical_or", "y = whether x0 or x1 is not 0, bool");
    static Var compose(const auto& g) { return either(truth(g.x(0)), truth(g.x(1))); }
};
struct LogicalXor {
    static constexpr auto about =
        logic_of_two("catena.logical_xor", "y = whether one of x0 and x1 is not 0, bool");
    static Var compose(const auto& g) { return is_not_equal(truth(g.x(0)), truth(g.x(1))); }
};

constexpr auto logic_of_one(const char* name, const char* doc) {
    return describe(name, doc, in(Port("x").of("X")), out(Port("y").of("Y")))
        .not_differentiable()
        .example("x=(2,3)")
        .example("x=()[0,0]");
}
struct LogicalNot {
    static constexpr auto about = logic_of_one("catena.logical_not", "y = whether x is 0, bool");
    static Var compose(const auto& g) { return call<"catena.invert">({truth(g.x(0))}); }
};
struct IsNan {
    static constexpr auto about = logic_of_one("catena.isnan", "y = whether x is NaN, bool");
    static Var compose(const auto& g) {
        const Var x = comparable(g.x(0));
        return is_not_equal(x, x);
    }
};
struct IsInf {
    static constexpr auto about = logic_of_one("catena.isinf", "y = whether x is infinite, bool");
    static Var compose(const auto& g) {
        const Var x = comparable(g.x(0));
        if (!is_floating(x.dtype())) return is_not_equal(x, x);
        return is_equal(math::abs(x), std::numeric_limits<double>::infinity());
    }
};
struct IsFinite {
    static constexpr auto about =
        logic_of_one("catena.isfinite", "y = whether x is a finite number, bool");
    static Var compose(const auto& g) {
        const Var x = comparable(g.x(0));
        const Var zero = is_floating(x.dtype()) ? x - x : x;  // NaN if x is not finite
        return is_equal(zero, zero);
    }
};

struct IsClose {
    static constexpr auto about =
        describe("catena.isclose",
                 "y = whether |x0 - x1| <= atol + rtol |x1|, bool. Infinities are close to "
                 "themselves. Integers are compared in float64",
                 in("x0", "x1"), out(Port("y").of("Y")),
                 attr("rtol", 1e-5, "the tolerance in relation to x1"),
                 attr("atol", 1e-8, "the absolute tolerance"),
                 attr("equal_nan", false, "whether NaN is close to NaN"))
            .promotes()
            .not_differentiable()
            .example("x0=(2,3) x1=(2,3)")
            .example("x0=(2,1)[1,1] x1=(3)[1,1.5] rtol=0.25 equal_nan=true");
    static Var compose(const auto& g) {
        const auto floats = [&](const Var& x) {
            return is_floating(x.dtype()) ? x : cast(x, dtype_of<double>());
        };
        const Var a = floats(g.x(0)), b = floats(g.x(1));
        const Var limit = g.template attr<"rtol">() * math::abs(b) + g.template attr<"atol">();
        const Var near = call<"catena.is_greater_equal">({limit, math::abs(a - b)});
        // The limit of an infinite b is infinite.
        const Var zero = b - b;
        const Var close = either(both(near, is_equal(zero, zero)), is_equal(a, b));
        return g.template attr<"equal_nan">()
                   ? either(close, both(is_not_equal(a, a), is_not_equal(b, b)))
                   : close;
    }
};

CATENA_FUNCTIONS(LogicalAnd, LogicalOr, LogicalXor, LogicalNot, IsNan, IsInf, IsFinite, IsClose);

}  // namespace catena::plugins
