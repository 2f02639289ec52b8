// Functions that replace elements at indices, or add to them, and gather().
#pragma once

#include "axes.hpp"

namespace catena::plugins {

inline constexpr Port indices_port = Port("indices", "negative ones count from the end")
                                         .of("I")
                                         .not_differentiable();
inline constexpr Attribute indexed_axis = attr("axis", -1, "the axis; negative: from the last");

// x[:shape[0], :shape[1], ...], and its inverse, which adds zeros.
inline Var cut(const Var& x, const IntList& shape) {
    const Meta meta = x.meta();
    return std::ranges::equal(meta.shape(), shape) ? x : get_item(x, List(shape.size()), shape);
}
inline Var extend(const Var& x, const IntList& shape) {
    const Meta meta = x.meta();
    if (std::ranges::equal(meta.shape(), shape)) return x;
    const List begin(shape.size());
    return call<"catena.put_item">({x}, {set("shape", Ints(shape)), set("begin", Ints(begin)),
                                         set("end", meta.shape())});
}
inline List with_extent(Shape whole, std::size_t axis, std::int64_t extent) {
    List shape = list_of(whole);
    shape[axis] = extent;
    return shape;
}

// Calls f(x, src) in a dtype that has sums, int32 for bytes and bool, and returns it as x: sums of
// bytes are modulo 256, sums of bool are whether any is true.
template <class Sum>
Var in_arithmetic(const Var& x, const Var& src, const Sum& f) {
    const catena_dtype dtype = x.dtype();
    if (dtype.code != CATENA_CODE_UINT && dtype.code != CATENA_CODE_BOOL) return f(x, src);
    const auto number = dtype_of<std::int32_t>();
    return cast(f(cast(x, number), cast(src, number)), dtype);
}

// The axis. Throws unless the indices have as many axes as x, and none but the axis is longer.
inline std::size_t check_within(const auto& g) {
    const Meta x = g.x_meta(0), indices = g.x_meta(1);
    const std::size_t axis = g.axis(g.template attr<"axis">(), x.shape().size());
    bool fits = indices.ndim == x.ndim;
    for (std::size_t d = 0; fits && d < x.shape().size(); ++d)
        fits = d == axis || indices.shape()[d] <= x.shape()[d];
    g.check(fits, "indices.shape",
            "at most " + text_of(x.shape()) + " but for axis " + text_of(axis), indices.shape());
    return axis;
}

struct Gather {
    static constexpr auto about =
        describe("catena.gather",
                 "y = the elements of x at indices along an axis, as torch.gather\n\n"
                 "For axis 1 of three, y[i, j, k] = x[i, indices[i, j, k], k]. The indices may be "
                 "shorter than x along the other axes.",
                 in("x", indices_port), out("y"), indexed_axis)
            .example("x=(2,3) indices=(2,4)[0,2]")
            .example("x=(3,3) indices=(2,2)[-3,2] axis=0");

    static Var compose(const auto& g) {
        const std::size_t axis = check_within(g);
        const Meta x = g.x_meta(0), indices = g.x_meta(1);
        const List part = with_extent(indices.shape(), axis, x.shape()[axis]);
        return take_along_axis(cut(g.x(0), part), g.x(1), static_cast<std::int64_t>(axis));
    }
};

template <bool add>
struct Scattering {
    static Var compose(const auto& g) {
        const std::size_t axis = check_within(g);
        const Meta x = g.x_meta(0), indices = g.x_meta(1), src = g.x_meta(2);
        bool fits = indices.ndim == src.ndim;
        for (std::size_t d = 0; fits && d < src.shape().size(); ++d)
            fits = indices.shape()[d] <= src.shape()[d];
        g.check(fits, "indices.shape", "at most " + text_of(src.shape()) + ", the shape of src",
                indices.shape());
        if (indices.size() == 0) return g.x(0);
        const List part = with_extent(indices.shape(), axis, x.shape()[axis]);
        const auto along = static_cast<std::int64_t>(axis);
        const std::initializer_list<catena_named_value> places = {set("shape", Ints(part)),
                                                                  set("axis", along)};
        const Var from = cut(g.x(2), indices.shape());
        if constexpr (add)
            return in_arithmetic(g.x(0), from, [&](const Var& to, const Var& added) {
                return to + extend(call<"catena.put_along_axis_add">({added, g.x(1)}, places),
                                   x.shape());
            });
        // 1 + the position in src of each element, or 0; then the position, with any for 0.
        const Var last = extend(call<"catena.last_along_axis">({g.x(1)}, places), x.shape());
        const Var hit = last > 0.0;
        const List wide = with_extent(x.shape(), axis, indices.shape()[axis]);
        return math::where(cast(hit, dtype_of<bool>()),
                           take_along_axis(extend(from, wide), last - hit, along), g.x(0));
    }
};
struct Scatter : Scattering<false> {
    static constexpr auto about =
        describe("catena.scatter",
                 "y = x with elements replaced at indices along an axis, as torch.scatter\n\n"
                 "For axis 1 of three, y[i, indices[i, j, k], k] = src[i, j, k]. The indices may be "
                 "shorter than x along the other axes, and shorter than src along all. If an index "
                 "repeats, the last one counts, also in the gradient.",
                 in("x", indices_port, "src"), out("y"), indexed_axis)
            .promotes()
            .example("x=(2,3) indices=(2,2)[0,2] src=(2,2)")
            .example("x=(3,3) indices=(2,2)[-3,2] src=(2,3) axis=0");
};
struct ScatterAdd : Scattering<true> {
    static constexpr auto about =
        describe("catena.scatter_add",
                 "y = x with src added at indices along an axis, as torch.scatter_add\n\n"
                 "As catena.scatter, but repeated indices add up.",
                 in("x", indices_port, "src"), out("y"), indexed_axis)
            .promotes()
            .example("x=(2,3) indices=(2,2)[0,2] src=(2,2)")
            .example("x=(3,3) indices=(2,2)[-3,2] src=(2,3) axis=0");
};

struct IndexAdd {
    static constexpr auto about =
        describe("catena.index_add",
                 "y = x with slices of src added at indices along an axis, as torch.index_add",
                 in("x", indices_port,
                    Port("src", "the shape of x with the axes of indices in place of the axis")),
                 out("y"), indexed_axis)
            .promotes()
            .example("x=(3,2) indices=[1,1,-3] src=(3,2) axis=0")
            .example("x=(2,3) indices=() src=(2)");

    static Var compose(const auto& g) {
        const Meta x = g.x_meta(0), indices = g.x_meta(1);
        const std::size_t axis = g.axis(g.template attr<"axis">(), x.shape().size());
        List expected = list_of(x.shape());
        const auto at = expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(axis));
        expected.insert(at, indices.shape().begin(), indices.shape().end());
        g.check_shape(2, expected);
        return in_arithmetic(g.x(0), g.x(2), [&](const Var& to, const Var& added) {
            return to + call<"catena.put_rows_add">(
                            {added, g.x(1)}, {set("shape", x.shape()), g.same("axis")});
        });
    }
};

struct Put {
    static constexpr auto about =
        describe("catena.put",
                 "y = x with elements of the flattened array replaced at indices, as numpy.put",
                 in("x", indices_port,
                    Port("values", "repeated if there are fewer than indices")),
                 out("y"))
            .promotes()
            .example("x=(2,3) indices=[4,0] values=(2)")
            .example("x=(5) indices=[4,0,-2] values=(2)");

    static Var compose(const auto& g) {
        const std::int64_t n = g.x(1).size(), given = g.x(2).size();
        if (n == 0) return g.x(0);
        g.check(given > 0, "values", "at least one", "none");
        Var values = reshape(g.x(2), {-1});
        if (given < n) {
            const std::int64_t reps[] = {(n + given - 1) / given};
            values = call<"catena.tile">({values}, {set("reps", Ints(reps))});
        }
        const Meta x = g.x_meta(0);
        return reshape(call<"catena.scatter">(
                           {reshape(g.x(0), {-1}), reshape(g.x(1), {-1}), values}),
                       x.shape());
    }
};

CATENA_FUNCTIONS(Gather, Scatter, ScatterAdd, IndexAdd, Put);

}  // namespace catena::plugins
