// Functions that select elements: by an index for each row, an order, a diagonal, strides.
#pragma once

#include "axes.hpp"

namespace catena::plugins {

struct SelectItem {
    static constexpr auto about =
        describe(
            "catena.select_item", "y[i] = x[i, t[i]]",
            in(Port("x", "(N, classes)"), Port("t", "(N), indices").of("I").not_differentiable()),
            out(Port("y", "(N)")))
            .example("x=(2,3) t=[2,0]");

    static Var compose(const auto& g) {
        g.check_ndim(0, 2);
        const std::int64_t n = g.x(0).dim(0);
        g.check_shape(1, {n});
        return reshape(take_along_axis(g.x(0), reshape(g.x(1), {n, 1}), 1), {n});
    }
};

struct Permutate {
    static constexpr auto about =
        describe(
            "catena.permutate",
            "y = x with its slices along an axis in another order: y[i] = x[indices[i]]",
            in("x", Port("indices", "each index of the axis once").of("I").not_differentiable()),
            out("y"), attr("axis", 0, "the axis"),
            attr("inv", false, "whether it is the inverse: y[indices[i]] = x[i]"))
            .example("x=(3,2) indices=[2,0,1]")
            .example("x=(2,3) indices=[2,0,1] axis=1 inv=true");

    static Var compose(const auto& g) {
        const auto axis = static_cast<std::int64_t>(
            g.axis(g.template attr<"axis">(), static_cast<std::size_t>(g.x(0).ndim())));
        const std::int64_t n = g.x(0).dim(axis);
        g.check_shape(1, {n});
        if (!g.template attr<"inv">()) return take(g.x(0), g.x(1), axis);
        // n + (i - n) at indices[i]; an index that is missing leaves n, which take() refuses.
        const Var places = call<"catena.put_rows_add">(
            {arange(n, dtype_of<std::int64_t>(), -n), g.x(1)}, {set("shape", Ints(IntList{n}))});
        return take(g.x(0), places + static_cast<double>(n), axis);
    }
};

struct Diagonal {
    static constexpr auto about =
        describe(
            "catena.diagonal", "y = the diagonal of two axes of x, along a new last axis", in("x"),
            out("y"),
            attr("offset", 0, "which: 0 is the main one, 1 begins one place later along axis2"),
            attr("axis1", 0, "the first axis"), attr("axis2", 1, "the second axis"))
            .example("x=(3,4)")
            .example("x=(2,3,2) offset=-1 axis1=1 axis2=-1");

    static Var compose(const auto& g) {
        g.check_least_ndim(0, 2);
        const std::int64_t offset = g.template attr<"offset">();
        const std::int64_t axes[] = {g.template attr<"axis1">(), g.template attr<"axis2">()};
        const std::int64_t last[] = {-2, -1};
        const Var x = call<"catena.moveaxis">(
            {g.x(0)}, {set("source", Ints(axes)), set("destination", Ints(last))});
        List shape = list_of(x.meta().shape());
        const std::int64_t columns = shape.back();
        shape.pop_back();
        const std::int64_t rows = shape.back();
        const std::int64_t first = offset >= 0 ? offset : -offset * columns;
        const std::int64_t n =
            std::max<std::int64_t>(0, std::min(rows + std::min<std::int64_t>(offset, 0),
                                               columns - std::max<std::int64_t>(offset, 0)));
        shape.back() = rows * columns;
        List begin(shape.size()), end = shape, step(shape.size(), 1);
        begin.back() = n > 0 ? first : 0;
        end.back() = n > 0 ? first + (n - 1) * (columns + 1) + 1 : 0;
        step.back() = columns + 1;
        return get_item(reshape(x, shape), begin, end, step);
    }
};

struct AsStrided {
    static constexpr auto about =
        describe(
            "catena.as_strided",
            "y = the elements at storage_offset + sum(index * strides) of the flattened x", in("x"),
            out("y"), required<Ints>("shape", "the shape of y"),
            required<Ints>("strides", "the distance of neighbours along each axis, in elements"),
            attr("storage_offset", 0, "the place of the first element"))
            .example("x=(6) shape=[3,2] strides=[1,3]")
            .example("x=(2,3) shape=[2,2] strides=[1,2] storage_offset=1");

    static Var compose(const auto& g) {
        const Ints shape = g.template attr<"shape">();
        const Ints strides = g.template attr<"strides">();
        g.check(shape.size() == strides.size(), "strides", "as many as axes of the shape",
                strides.size(), CATENA_E_INVALID);
        const std::int64_t offset = g.template attr<"storage_offset">();
        const std::int64_t size = g.x(0).size();
        auto least = static_cast<double>(offset), most = least;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            const double span =
                (static_cast<double>(shape[d]) - 1) * static_cast<double>(strides[d]);
            (span < 0 ? least : most) += span;
        }
        const auto text = [](double place) {
            return text_of(static_cast<std::int64_t>(std::clamp(place, -0x1p62, 0x1p62)));
        };
        g.check(size_of(shape) == 0 || (least >= 0 && most < static_cast<double>(size)),
                "storage_offset", "places from 0 to " + text_of(size - 1),
                text(least) + " to " + text(most), CATENA_E_VALUE);
        Var place = integers({offset});
        for (std::size_t d = 0; d < shape.size(); ++d) {
            List wide(shape.size() - d, 1);
            wide[0] = shape[d];
            place = place + reshape(arange(shape[d], place.dtype(), 0, strides[d]), wide);
        }
        return take(reshape(g.x(0), {-1}), reshape(place, shape));
    }
};

// (N, r r C, H, W) and (N, C, r H, r W).
inline constexpr Attribute block_attribute =
    required<std::int64_t>("r", "the extents of a block of places").range(1, 0x1p31);

struct DepthToSpace {
    static constexpr auto about =
        describe("catena.depth2space", "y = X with channels moved to places",
                 in(Port("X", "(N, r r C, H, W)")), out(Port("y", "(N, C, r H, r W)")),
                 block_attribute)
            .example("X=(1,8,2,3) r=2");

    static Var compose(const auto& g) {
        g.check_ndim(0, 4);
        const Meta x = g.x_meta(0);
        const std::int64_t r = g.template attr<"r">(), c = x.dim(1) / (r * r);
        const Var y = reshape(g.x(0), {x.dim(0), r, r, c, x.dim(2), x.dim(3)});
        return reshape(transpose(y, {0, 3, 4, 1, 5, 2}), {x.dim(0), c, r * x.dim(2), r * x.dim(3)});
    }
};

struct SpaceToDepth {
    static constexpr auto about =
        describe("catena.space2depth", "y = X with places moved to channels",
                 in(Port("X", "(N, C, r H, r W)")), out(Port("y", "(N, r r C, H, W)")),
                 block_attribute)
            .example("X=(1,2,4,6) r=2");

    static Var compose(const auto& g) {
        g.check_ndim(0, 4);
        const Meta x = g.x_meta(0);
        const std::int64_t r = g.template attr<"r">(), h = x.dim(2) / r, w = x.dim(3) / r;
        const Var y = reshape(g.x(0), {x.dim(0), x.dim(1), h, r, w, r});
        return reshape(transpose(y, {0, 3, 5, 1, 2, 4}), {x.dim(0), r * r * x.dim(1), h, w});
    }
};

template <bool upper>
struct Triangle {
    static Var compose(const auto& g) {
        g.check_least_ndim(0, 2);
        const std::int64_t n = g.x(0).dim(-2), m = g.x(0).dim(-1);
        const std::int64_t k = std::clamp(g.template attr<"k">(), -n, m) - (upper ? 1 : 0);
        const Var lower = call<"catena.tri">(
            {}, {set("n", n), set("m", m), set("k", k), set("dtype", dtype_of<bool>())});
        const Var zero = full({}, 0, g.x(0).dtype());
        return upper ? math::where(lower, zero, g.x(0)) : math::where(lower, g.x(0), zero);
    }
};
struct Tril : Triangle<false> {
    static constexpr auto about =
        describe("catena.tril", "y = x with zeros above the k-th diagonal of the last two axes",
                 in("x"), out("y"), attr("k", 0, "the diagonal"))
            .example("x=(3,3)")
            .example("x=(2,2,3) k=1");
};
struct Triu : Triangle<true> {
    static constexpr auto about =
        describe("catena.triu", "y = x with zeros below the k-th diagonal of the last two axes",
                 in("x"), out("y"), attr("k", 0, "the diagonal"))
            .example("x=(3,3)")
            .example("x=(2,2,3) k=1");
};

CATENA_FUNCTIONS(SelectItem, Permutate, Diagonal, AsStrided, DepthToSpace, SpaceToDepth, Tril,
                 Triu);

}  // namespace catena::plugins
