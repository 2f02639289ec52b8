// Functions that reverse or roll the order of elements along axes.
#pragma once

#include "axes.hpp"

namespace catena::plugins {

// x with the order of its elements reversed along the marked axes.
inline Var reversed(const Var& x, const std::vector<bool>& marks) {
    using Limits = std::numeric_limits<std::int64_t>;
    List begin, end, step;
    for (const bool mark : marks) {
        begin.push_back(mark ? Limits::max() : 0);
        end.push_back(mark ? Limits::min() : Limits::max());
        step.push_back(mark ? -1 : 1);
    }
    return marks.empty() ? x : get_item(x, begin, end, step);
}

struct Flip {
    static constexpr auto about =
        describe("catena.flip", "y = x in reversed order along axes", in("x"), out("y"),
                 attr("axis", Ints{}, "the axes; none: all"))
            .example("x=(2,3)")
            .example("x=(2,3) axis=-1");

    static Var compose(const auto& g) {
        const Ints axis = g.template attr<"axis">();
        auto marks = marked(g, axis, static_cast<std::size_t>(g.x(0).ndim()));
        if (axis.empty()) marks.assign(marks.size(), true);
        return reversed(g.x(0), marks);
    }
};

template <std::size_t axis>
struct FlipOne {
    static Var compose(const auto& g) {
        g.check_least_ndim(0, axis + 1);
        std::vector<bool> marks(axis + 1);
        marks[axis] = true;
        return reversed(g.x(0), marks);
    }
};
struct Fliplr : FlipOne<1> {
    static constexpr auto about =
        describe("catena.fliplr", "y = a in reversed order along axis 1", in("a"), out("y"))
            .example("a=(2,3)");
};
struct Flipud : FlipOne<0> {
    static constexpr auto about =
        describe("catena.flipud", "y = a in reversed order along axis 0", in("a"), out("y"))
            .example("a=(2,3)");
};

struct Roll {
    static constexpr auto about =
        describe("catena.roll",
                 "y = x with elements moved along axes; those moved beyond the end continue at the "
                 "beginning",
                 in("x"), out("y"),
                 required<Ints>("shift", "by how many places: a number for all axes or for each"),
                 attr("axis", Ints{}, "the axes; none: the flattened array"))
            .example("x=(2,3) shift=2")
            .example("x=(2,3) shift=[1,-2] axis=[0,1]");

    static Var compose(const auto& g) {
        const Meta x = g.x_meta(0);
        const Ints shift = g.template attr<"shift">();
        const Ints axis = g.template attr<"axis">();
        const std::size_t n = axis.empty() ? 1 : axis.size();
        g.check(shift.size() == 1 || shift.size() == n, "shift", "one number or " + text_of(n),
                shift.size(), CATENA_E_INVALID);
        Var y = axis.empty() ? reshape(g.x(0), {-1}) : g.x(0);
        for (std::size_t i = 0; i < n; ++i) {
            const auto ndim = static_cast<std::size_t>(y.ndim());
            const auto d = axis.empty() ? 0 : static_cast<std::int64_t>(g.axis(axis[i], ndim));
            const std::int64_t length = std::max<std::int64_t>(y.dim(d), 1);
            const std::int64_t by = shift[shift.size() == 1 ? 0 : i] % length;
            if (by == 0) continue;
            const std::int64_t first = by < 0 ? -by : length - by;
            y = concat({slice(y, d, first, length), slice(y, d, 0, first)}, d);
        }
        return axis.empty() ? reshape(y, x.shape()) : y;
    }
};

CATENA_FUNCTIONS(Flip, Fliplr, Flipud, Roll);

}  // namespace catena::plugins
