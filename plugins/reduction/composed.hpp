// Reductions and orders that are compositions.
#pragma once

#include <cfloat>
#include <limits>

#include <catena/plugin/precision.hpp>

#include "fold.hpp"

namespace catena::plugins {

// For numbers that must not change gradients, such as a scale that cancels.
struct Detached {
    static constexpr auto about =
        describe("catena.detached", "y = x, in the same memory, without a gradient", in("x"),
                 out("y"))
            .not_differentiable()
            .internal()
            .example("x=(2,3)");
    static Var compose(const auto& g) { return g.x(0); }
};

// The square root, whose gradient is 0 at 0.
inline Var root(const Var& x) {
    const Var positive = x > 0.0;
    return math::sqrt(x + (1.0 - positive)) * positive;
}

struct Std {
    static constexpr auto about =
        describe("catena.std",
                 "y = the standard deviation of x along axes, the square root of catena.var\n\nThe "
                 "gradient is 0 where it is 0, as in PyTorch.",
                 in("x"), out("y"), axis_attr, keepdims_attr, attr("ddof", 0, "as for catena.var"))
            .example("x=(2,3)")
            .example("x=(2,3,4) axis=[0,-1] keepdims=true");
    static Var compose(const auto& g) {
        const Var v = call<"catena.var">({widened(g.x(0))},
                                         {g.same("axis"), g.same("keepdims"), g.same("ddof")});
        return in_dtype(root(v), g.x(0).dtype());
    }
};

struct Norm {
    static constexpr auto about =
        describe("catena.norm",
                 "y = the norm of the elements along axes, as a vector\n\n"
                 "Squares of large or small elements neither overflow nor vanish. The gradient of "
                 "the root of a sum of squares is 0 where that is 0.",
                 in("x"), out("y"),
                 attr("ord", 2.0,
                      "2: the root of the sum of squares; 1: the sum of absolute values; infinity: "
                      "the largest of them"),
                 axis_attr, keepdims_attr)
            .example("x=(2,3)[0.5,1.5]")
            .example("x=(2,3)[-1.5,-0.5] ord=1 axis=0")
            .example("x=(2,3,4) axis=[0,-1] keepdims=true");
    static Var compose(const auto& g) {
        const double ord = g.template attr<"ord">();
        const bool is_largest = ord == std::numeric_limits<double>::infinity();
        g.check(ord == 1 || ord == 2 || is_largest, "ord", "1, 2 or inf", ord, CATENA_E_INVALID);
        const Var x = widened(g.x(0));
        const Var y = is_largest
                          ? call<"catena.max">({math::abs(x)}, {g.same("axis"), g.same("keepdims")})
                          : root_of_sum(g, ord == 1 ? math::abs(x) : x, ord == 1);
        return in_dtype(y, g.x(0).dtype());
    }

private:
    static Var total(const auto& g, const Var& x) {
        return call<"catena.sum">({x}, {g.same("axis"), g.same("keepdims")});
    }
    // The squares are those of x / scale. The scale is far below the largest number of the dtype,
    // because gradients are multiplied by it.
    static Var root_of_sum(const auto& g, const Var& x, bool is_sum) {
        if (is_sum) return total(g, x);
        if (x.size() == 0) return root(total(g, x * x));
        const bool is_double = same(x.dtype(), dtype_of<double>());
        const double least = is_double ? DBL_MIN : double{FLT_MIN};
        const double most = is_double ? DBL_MAX : double{FLT_MAX};
        const Var largest = call<"catena.max">({math::abs(call<"catena.detached">({x}))},
                                               {g.same("axis"), set("keepdims", true)});
        const Var usual = math::where(largest > 1.0, largest * 0x1p-30, math::max(largest, least));
        const Var scale = math::where(largest <= most, usual, 1.0);
        const Var part = x / scale;
        const Var y = root(total(g, part * part));
        const Meta meta = y.meta();
        return y * reshape(scale, meta.shape());
    }
};

struct Average {
    static constexpr auto about =
        describe(
            "catena.average",
            "y = the mean of x along axes; with weights, sum(x weights) / sum(weights)",
            in("x",
               Port("weights", "the shape of x, or the extents of axis in its order").optional()),
            out("y"), axis_attr, keepdims_attr)
            .promotes()
            .example("x=(2,3) axis=1")
            .example("x=(2,3) weights=(2,3)[0.5,1.5]")
            .example("x=(2,3) weights=(3)[0.5,1.5] axis=1")
            .example("x=(2,3,2) weights=(2,2)[0.5,1.5] axis=[2,0] keepdims=true");
    static Var compose(const auto& g) {
        if (!g.has(1)) return call<"catena.mean">({g.x(0)}, {g.same("axis"), g.same("keepdims")});
        const Var x = widened(g.x(0)), weights = widened(g.x(1));
        const Ints axes = g.template attr<"axis">();
        const bool keepdims = g.template attr<"keepdims">();
        const Meta meta = x.meta(), given = weights.meta();
        const auto ratio = [&](const Var& wide, const Var& total) {
            return in_dtype(sum(x * wide, axes, keepdims) / total, g.x(0).dtype());
        };
        if (same_shape(meta, given)) return ratio(weights, sum(weights, axes, keepdims));
        // Orders the axes of the weights as in x, with extent 1 for others.
        List own, order, wide(meta.shape().size(), 1);
        for (const std::int64_t axis : axes) {
            const std::size_t d = g.axis(axis, wide.size());
            order.push_back(static_cast<std::int64_t>(own.size()));
            own.push_back(wide[d] = meta.shape()[d]);
        }
        g.check(!axes.empty() && std::ranges::equal(own, given.shape()), "weights.shape",
                text_of(meta.shape()) + " or the extents of axis " + text_of(axes), given.shape());
        std::ranges::sort(order, {}, [&](std::int64_t i) {
            return axis_index(axes[static_cast<std::size_t>(i)], wide.size());
        });
        return ratio(reshape(transpose(weights, order), wide), sum(weights));
    }
};

// One of the outputs of topk(), for all elements of an axis.
template <std::size_t output>
struct Sorted {
    static Var compose(const auto& g) {
        const Meta x = g.x_meta(0);
        const std::size_t d = g.axis(g.template attr<"axis">(), x.shape().size());
        return call_all<"catena.topk", 2>(
            {g.x(0)}, {set("k", x.shape()[d]), g.same("axis"),
                       set("largest", g.template attr<"descending">())})[output];
    }
};
constexpr auto sorted(const char* name, const char* doc, const Port& y) {
    return describe(name, doc, in("x"), out(y), attr("axis", -1, "the axis"),
                    attr("descending", false, "from the largest element on"))
        .example("x=(2,5)")
        .example("x=(5,2) axis=0 descending=true");
}
struct Sort : Sorted<0> {
    static constexpr auto about = sorted("catena.sort",
                                         "y = the elements of x in order along an axis\n\nEqual "
                                         "elements keep their order. NaN counts "
                                         "as the largest.",
                                         "y");
};
struct Argsort : Sorted<1> {
    static constexpr auto about =
        sorted("catena.argsort", "indices = those of the elements of x in order along an axis",
               Port("indices", "int64").of("I").not_differentiable())
            .not_differentiable();
};

CATENA_FUNCTIONS(Detached, Std, Norm, Average, Sort, Argsort);

}  // namespace catena::plugins
