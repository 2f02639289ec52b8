// Functions that insert, remove, merge and reorder axes. Results share the memory of x if the
// elements keep their order.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// Which of ndim axes are in a list that names each at most once.
inline std::vector<bool> marked(const auto& g, Ints axes, std::size_t ndim,
                                const char* what = "axis") {
    std::vector<bool> marks(ndim);
    for (const std::int64_t axis : axes) {
        const std::size_t d = g.axis(axis, ndim, what);
        g.check(!marks[d], what, "each axis once", axes, CATENA_E_INVALID);
        marks[d] = true;
    }
    return marks;
}

// x with its axes in another order: a view if axes of length 1 move and others keep their order.
inline Var permuted(const Var& x, const List& axes) {
    const Meta meta = x.meta();
    bool ordered = true;
    std::int64_t last = -1;
    List shape;
    for (const std::int64_t axis : axes) {
        shape.push_back(meta.dim(axis));
        if (meta.dim(axis) == 1) continue;
        ordered = ordered && axis > last;
        last = axis;
    }
    return ordered ? reshape(x, shape) : transpose(x, axes);
}

struct ExpandDims {
    static constexpr auto about =
        describe("catena.expand_dims", "y = x with new axes of length 1, in the same memory",
                 in("x"), out("y"), required<Ints>("axis", "the new axes, of y"))
            .example("x=(2,3) axis=1")
            .example("x=(2) axis=[0,-1]");

    static Var compose(const auto& g) {
        const Meta x = g.x_meta(0);
        const Ints axis = g.template attr<"axis">();
        List shape = list_of(x.shape());
        const auto is_new = marked(g, axis, shape.size() + axis.size());
        for (std::size_t d = 0; d < is_new.size(); ++d)
            if (is_new[d]) shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(d), 1);
        return reshape(g.x(0), shape);
    }
};

struct Squeeze {
    static constexpr auto about =
        describe("catena.squeeze", "y = x without axes of length 1, in the same memory", in("x"),
                 out("y"), attr("axis", Ints{}, "the axes that leave; none: all of length 1"))
            .example("x=(1,2,1)")
            .example("x=(1,2,1) axis=-1");

    static Var compose(const auto& g) {
        const Meta x = g.x_meta(0);
        const Ints axis = g.template attr<"axis">();
        const auto leaves = marked(g, axis, x.shape().size());
        List shape;
        for (std::size_t d = 0; d < leaves.size(); ++d) {
            const std::int64_t n = x.shape()[d];
            g.check(!leaves[d] || n == 1, "axis", "axes of length 1 of " + text_of(x.shape()), d);
            if (!leaves[d] && (n != 1 || !axis.empty())) shape.push_back(n);
        }
        return reshape(g.x(0), shape);
    }
};

struct Flatten {
    static constexpr auto about =
        describe("catena.flatten", "y = the elements of x along one axis, in the same memory",
                 in("x"), out("y"))
            .example("x=(2,3)")
            .example("x=()");

    static Var compose(const auto& g) { return reshape(g.x(0), {-1}); }
};

struct Moveaxis {
    static constexpr auto about =
        describe("catena.moveaxis", "y = x with axes moved to other positions", in("x"), out("y"),
                 required<Ints>("source", "the axes, of x"),
                 required<Ints>("destination", "where they are in y; the others keep their order"))
            .example("x=(2,3,4) source=0 destination=-1")
            .example("x=(2,3,4) source=[2,0] destination=[0,1]");

    static Var compose(const auto& g) {
        const Ints source = g.template attr<"source">();
        const Ints destination = g.template attr<"destination">();
        const auto n = static_cast<std::size_t>(g.x(0).ndim());
        g.check(source.size() == destination.size(), "destination",
                text_of(source.size()) + " axes as in source", destination.size(),
                CATENA_E_INVALID);
        const auto moves = marked(g, source, n, "source");
        marked(g, destination, n, "destination");
        List axes(n, -1);
        for (std::size_t i = 0; i < source.size(); ++i)
            axes[axis_index(destination[i], n)] =
                static_cast<std::int64_t>(axis_index(source[i], n));
        std::size_t next = 0;
        for (std::int64_t& axis : axes) {
            if (axis >= 0) continue;
            while (moves[next]) ++next;
            axis = static_cast<std::int64_t>(next++);
        }
        return permuted(g.x(0), axes);
    }
};

// 0, 1, ..., n - 1
inline List axes_in_order(std::size_t n) {
    List axes(n);
    for (std::size_t d = 0; d < n; ++d) axes[d] = static_cast<std::int64_t>(d);
    return axes;
}

struct Swapaxes {
    static constexpr auto about =
        describe("catena.swapaxes", "y = x with two axes exchanged", in("x"), out("y"),
                 required<std::int64_t>("axis1", "an axis"),
                 required<std::int64_t>("axis2", "the other axis"))
            .example("x=(2,3,4) axis1=0 axis2=-1");

    static Var compose(const auto& g) {
        List axes = axes_in_order(static_cast<std::size_t>(g.x(0).ndim()));
        std::swap(axes[g.axis(g.template attr<"axis1">(), axes.size(), "axis1")],
                  axes[g.axis(g.template attr<"axis2">(), axes.size(), "axis2")]);
        return permuted(g.x(0), axes);
    }
};

struct Rollaxis {
    static constexpr auto about =
        describe("catena.rollaxis", "y = x with an axis moved back until it is before another one",
                 in("x"), out("y"), required<std::int64_t>("axis", "the axis"),
                 attr("start", 0, "the axis is moved in front of this one; ndim: to the end"))
            .example("x=(2,3,4) axis=2")
            .example("x=(2,3,4) axis=0 start=3");

    static Var compose(const auto& g) {
        List axes = axes_in_order(static_cast<std::size_t>(g.x(0).ndim()));
        const auto n = static_cast<std::int64_t>(axes.size());
        const auto from = static_cast<std::int64_t>(g.axis(g.template attr<"axis">(), axes.size()));
        std::int64_t to = g.template attr<"start">();
        g.check(to >= -n && to <= n, "start", text_of(-n) + " to " + text_of(n), to);
        to += to < 0 ? n : 0;
        axes.erase(axes.begin() + from);
        axes.insert(axes.begin() + (from < to ? to - 1 : to), from);
        return permuted(g.x(0), axes);
    }
};

CATENA_FUNCTIONS(ExpandDims, Squeeze, Flatten, Moveaxis, Swapaxes, Rollaxis);

}  // namespace catena::plugins
