// Functions that repeat elements, and padding.
#pragma once

#include <catena/plugin/precision.hpp>

#include "axes.hpp"

namespace catena::plugins {

// x with each slice along an axis repeated.
inline Var each_repeated(const Var& x, std::int64_t times, std::size_t axis) {
    if (times == 1) return x;
    const Meta meta = x.meta();
    List together = list_of(meta.shape());
    List apart = together, repeated = together;
    const auto next = static_cast<std::ptrdiff_t>(axis) + 1;
    apart.insert(apart.begin() + next, 1);
    repeated.insert(repeated.begin() + next, times);
    together[axis] *= times;
    return reshape(broadcast_to(reshape(x, apart), repeated), together);
}

inline constexpr auto not_negative = [](std::int64_t n) { return n >= 0; };

struct Tile {
    static constexpr auto about =
        describe("catena.tile", "y = x, repeated as a whole along each axis", in("x"), out("y"),
                 required<Ints>("reps", "how often, along the last axes; more numbers add axes"))
            .example("x=(2,3) reps=2")
            .example("x=(2,3) reps=[2,1,2]");

    static Var compose(const auto& g) {
        const Meta x = g.x_meta(0);
        const Ints reps = g.template attr<"reps">();
        g.check(std::ranges::all_of(reps, not_negative), "reps", "no negative number", reps,
                CATENA_E_INVALID);
        List shape = list_of(x.shape()), times = list_of(reps);
        const std::size_t n = std::max(shape.size(), times.size());
        shape.insert(shape.begin(), n - shape.size(), 1);
        times.insert(times.begin(), n - times.size(), 1);
        List apart, repeated, together;
        for (std::size_t d = 0; d < n; ++d) {
            if (times[d] != 1) {
                apart.push_back(1);
                repeated.push_back(times[d]);
            }
            apart.push_back(shape[d]);
            repeated.push_back(shape[d]);
            together.push_back(shape[d] * times[d]);
        }
        if (repeated.size() == n) return reshape(g.x(0), together);
        return reshape(broadcast_to(reshape(g.x(0), apart), repeated), together);
    }
};

struct Repeat {
    static constexpr auto about =
        describe(
            "catena.repeat", "y = x with each element repeated along an axis", in("x"), out("y"),
            required<Ints>("repeats", "how often: a number, or one for each element of the axis"),
            attr("axis", Ints{}, "the axis; none: that of the flattened array"))
            .example("x=(2,3) repeats=2")
            .example("x=(2,3) repeats=[1,0,2] axis=1");

    static Var compose(const auto& g) {
        const Ints repeats = g.template attr<"repeats">();
        const Ints axis = g.template attr<"axis">();
        g.check(axis.size() <= 1, "axis", "one axis", axis, CATENA_E_INVALID);
        const Var x = axis.empty() ? reshape(g.x(0), {-1}) : g.x(0);
        const std::size_t d =
            axis.empty() ? 0 : g.axis(axis[0], static_cast<std::size_t>(x.ndim()));
        const std::int64_t n = x.dim(static_cast<std::int64_t>(d));
        g.check(repeats.size() == 1 || static_cast<std::int64_t>(repeats.size()) == n, "repeats",
                "one number or " + text_of(n), repeats.size(), CATENA_E_INVALID);
        g.check(std::ranges::all_of(repeats, not_negative), "repeats", "no negative number",
                repeats, CATENA_E_INVALID);
        if (repeats.size() == 1) return each_repeated(x, repeats[0], d);
        List indices;
        for (std::size_t i = 0; i < repeats.size(); ++i)
            indices.insert(indices.end(), static_cast<std::size_t>(repeats[i]),
                           static_cast<std::int64_t>(i));
        return take(x, integers(indices), static_cast<std::int64_t>(d));
    }
};

inline constexpr const char* pad_modes[] = {"constant",  "edge", "reflect",
                                            "symmetric", "wrap", nullptr};

struct Pad {
    static constexpr auto about =
        describe("catena.pad", "y = x with elements before and after it along each axis", in("x"),
                 out("y"),
                 required<Ints>("pad_width",
                                "how many: a number; before and after each axis; or these two "
                                "numbers for each axis in turn"),
                 attr("mode", "constant", "which, as in numpy.pad").one_of(pad_modes),
                 attr("constant_values", 0.0, "the number for the mode constant"))
            .example("x=(2,3) pad_width=1")
            .example("x=(2,3) pad_width=[0,1,2,0] constant_values=2")
            .example("x=(2,3) pad_width=[2,3] mode=\"edge\"")
            .example("x=(3,3) pad_width=[1,4] mode=\"reflect\"")
            .example("x=(2,3) pad_width=[0,0,3,4] mode=\"symmetric\"")
            .example("x=(2,3) pad_width=[3,0] mode=\"wrap\"");

    static Var compose(const auto& g) {
        const Meta x = g.x_meta(0);
        const std::size_t n = x.shape().size();
        const Ints given = g.template attr<"pad_width">();
        g.check(given.size() > 2 ? given.size() == 2 * n : !given.empty(), "pad_width",
                "1, 2 or " + text_of(2 * n) + " numbers", given.size(), CATENA_E_INVALID);
        g.check(std::ranges::all_of(given, not_negative), "pad_width", "no negative number", given,
                CATENA_E_INVALID);
        List before, end, shape;
        bool any = false;
        for (std::size_t d = 0; d < n; ++d) {
            const std::size_t first = given.size() > 2 ? 2 * d : 0;
            const std::int64_t behind = given[given.size() == 1 ? 0 : first + 1];
            std::int64_t all = 0;
            before.push_back(given[first]);
            const bool fits = !__builtin_add_overflow(before[d], x.shape()[d], &all) &&
                              !__builtin_add_overflow(all, behind, &all);
            g.check(fits, "pad_width", "extents below 2^63", given, CATENA_E_INVALID);
            end.push_back(before[d] + x.shape()[d]);
            shape.push_back(all);
            any = any || all != x.shape()[d];
        }
        if (!any) return g.x(0);
        const std::string_view mode = g.template attr<"mode">();
        if (mode != "constant") {
            Var y = g.x(0);
            for (std::size_t d = 0; d < n; ++d) {
                if (shape[d] == x.shape()[d]) continue;
                g.check(x.shape()[d] > 0, "x", "elements along axis " + text_of(d), x.shape());
                y = take(y, source(mode, x.shape()[d], before[d], shape[d]),
                         static_cast<std::int64_t>(d));
            }
            return y;
        }
        const auto placed = [&](const Var& v) {
            return call<"catena.put_item">(
                {v},
                {set("shape", Ints(shape)), set("begin", Ints(before)), set("end", Ints(end))});
        };
        const double value = g.template attr<"constant_values">();
        g.check(is_floating(x.dtype) || std::abs(value) <= 0x1p53, "constant_values",
                "an integer from -2^53 to 2^53, which a float64 holds exactly", value,
                CATENA_E_VALUE);
        if (value == 0) return placed(g.x(0));
        return math::where(placed(full(x.shape(), 1, dtype_of<bool>())), placed(g.x(0)),
                           full({}, value, x.dtype));
    }

private:
    // The index along an axis of n elements for each place of y, which begins `before` places
    // before it: a list, or computed on the device if it is long.
    static Var source(std::string_view mode, std::int64_t n, std::int64_t before,
                      std::int64_t length) {
        const std::int64_t period = mode == "wrap"        ? n
                                    : mode == "symmetric" ? 2 * n
                                                          : std::max<std::int64_t>(2 * n - 2, 1);
        const std::int64_t mirrored = mode == "symmetric" ? period - 1 : period;
        if (length <= longest_list) {
            List list;
            for (std::int64_t i = -before; i < length - before; ++i) {
                const std::int64_t place = (i % period + period) % period;
                list.push_back(mode == "edge"   ? std::clamp<std::int64_t>(i, 0, n - 1)
                               : mode == "wrap" ? place
                                                : std::min(place, mirrored - place));
            }
            return integers(list);
        }
        const auto number = [](std::int64_t x) { return static_cast<double>(x); };
        const Var i = arange(length, dtype_of<std::int64_t>(), -before);
        if (mode == "edge") return math::min(math::max(i, 0.0), number(n - 1));
        const Var place = i - number(period) * call<"catena.floor_divide">({i, number(period)});
        return mode == "wrap" ? place : math::min(place, number(mirrored) - place);
    }
    // The kernel of a device gets a list in parts of 256 numbers.
    static constexpr std::int64_t longest_list = 4096;
};

CATENA_FUNCTIONS(Tile, Repeat, Pad);

}  // namespace catena::plugins
