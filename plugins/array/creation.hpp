// New arrays that are computed from integers at equal distances.
#pragma once

#include "full.hpp"

namespace catena::plugins {

inline constexpr double most_numbers = 0x1p40;
inline constexpr Attribute size_attribute =
    required<std::int64_t>("n", "the number of rows").range(0, most_numbers);
inline constexpr Attribute columns_attribute =
    attr("m", -1, "the number of columns; -1: as many as rows").range(-1, most_numbers);
inline constexpr Attribute diagonal_attribute =
    attr("k", 0, "the diagonal: 0 is the main one, 1 the one above it");

// The numbers of the rows, which begin with k, as a column; and those of the columns.
struct Places {
    explicit Places(const auto& g)
        : n(g.template attr<"n">()),
          m(g.template attr<"m">() < 0 ? n : g.template attr<"m">()),
          row(reshape(arange(n, dtype_of<std::int64_t>(),
                             std::clamp(g.template attr<"k">(), -(n + m), n + m)),
                      {n, 1})),
          column(arange(m)) {}
    std::int64_t n, m;
    Var row, column;
};

struct Eye {
    static constexpr auto about =
        describe("catena.eye", "y = a matrix of 1 in the k-th diagonal, else 0", in(), out("y"),
                 size_attribute, columns_attribute, diagonal_attribute, new_dtype)
            .not_differentiable()
            .example("n=3")
            .example("n=2 m=3 k=1 dtype=\"int32\"");

    static Var compose(const auto& g) {
        const Places at(g);
        return cast(call<"catena.is_equal">({at.row, at.column}), g.template attr<"dtype">());
    }
};

struct Tri {
    static constexpr auto about =
        describe("catena.tri", "y = a matrix of 1 in the k-th diagonal and below, else 0", in(),
                 out("y"), size_attribute, columns_attribute, diagonal_attribute, new_dtype)
            .not_differentiable()
            .example("n=3")
            .example("n=2 m=3 k=-1 dtype=\"bool\"");

    static Var compose(const auto& g) {
        const Places at(g);
        return cast(call<"catena.is_greater_equal">({at.row, at.column}),
                    g.template attr<"dtype">());
    }
};

struct Linspace {
    static constexpr auto about =
        describe("catena.linspace",
                 "y = numbers at equal distances from start to stop\n\n"
                 "They are rounded from float64 to the dtype, for integers towards 0.",
                 in(), out("y"), required<double>("start", "the first number"),
                 required<double>("stop", "the last number, or where the next one would be"),
                 attr("n", 50, "how many").range(0, most_numbers),
                 attr("endpoint", true, "whether stop itself is the last number"), new_dtype)
            .not_differentiable()
            .example("start=0 stop=1 n=5")
            .example("start=2 stop=-1 n=3 endpoint=false dtype=\"float64\"");

    static Var compose(const auto& g) {
        const std::int64_t n = g.template attr<"n">();
        const auto last = static_cast<double>(
            std::max<std::int64_t>(g.template attr<"endpoint">() ? n - 1 : n, 1));
        const double start = g.template attr<"start">(), stop = g.template attr<"stop">();
        const Var i = arange(n, dtype_of<double>());
        const Var y = start + i * ((stop - start) / last);
        // The sum rounds: the number `last` is stop itself.
        const Var is_last = call<"catena.is_equal">({i, last});
        return cast(math::where(is_last, stop, y), g.template attr<"dtype">());
    }
};

struct OneHot {
    static constexpr auto about =
        describe(
            "catena.one_hot", "y = vectors along a new axis with 1 at index t, else 0",
            in(Port("t", "integers; others than 0 to depth - 1 give only 0")
                   .of("I")
                   .not_differentiable()),
            out("y"),
            required<std::int64_t>("depth", "the length of the new axis").range(0, most_numbers),
            attr("axis", -1, "the new axis, of y"), new_dtype)
            .not_differentiable()
            .example("t=[2,0,-1] depth=3")
            .example("t=(2,3)[0,4] depth=4 axis=1 dtype=\"float64\"");

    static Var compose(const auto& g) {
        const Meta t = g.x_meta(0);
        const std::int64_t depth = g.template attr<"depth">();
        const bool bytes = t.dtype.code == CATENA_CODE_UINT;
        g.check(bytes || t.dtype.code == CATENA_CODE_INT, "t", "integers", t.dtype, CATENA_E_DTYPE);
        List wide = list_of(t.shape());
        const std::size_t axis = g.axis(g.template attr<"axis">(), wide.size() + 1);
        List depths(wide.size() - axis + 1, 1);
        depths[0] = depth;
        wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(axis), 1);
        const Var x = bytes ? cast(g.x(0), dtype_of<std::int32_t>()) : g.x(0);
        const Var classes = reshape(arange(depth, x.dtype()), depths);
        return cast(call<"catena.is_equal">({reshape(x, wide), classes}),
                    g.template attr<"dtype">());
    }
};

CATENA_FUNCTIONS(Eye, Tri, Linspace, OneHot);

}  // namespace catena::plugins
