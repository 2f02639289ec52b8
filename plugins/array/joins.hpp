// Functions that join arrays along a new or an old axis.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Stack {
    static constexpr auto about =
        describe("catena.stack", "y = arrays of one shape, joined along a new axis",
                 in(Port("xs", "the arrays").variadic()), out("y"),
                 attr("axis", 0, "the new axis, of y"))
            .promotes()
            .example("xs=(2,3) xs=(2,3)")
            .example("xs=(2) xs=(2) xs=(2) axis=-1");

    static Var compose(const auto& g) {
        const Meta first = g.x_meta(0);
        List shape = list_of(first.shape());
        const std::size_t axis = g.axis(g.template attr<"axis">(), shape.size() + 1);
        shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis), 1);
        std::vector<Var> parts;
        for (std::size_t i = 0; i < g.n_x(); ++i) {
            const Meta x = g.x_meta(i);
            if (!same_shape(x, first))
                g.check(false, ("xs[" + std::to_string(i) + "].shape").c_str(), first.shape(),
                        x.shape());
            parts.push_back(reshape(g.x(i), shape));
        }
        return concat(parts, static_cast<std::int64_t>(axis));
    }
};

// Joins arrays along an axis. Adds axes so that each array has at least `least`: (n) becomes (1, n),
// then (1, n, 1).
template <std::size_t least, std::int64_t axis>
struct StackAlong {
    static Var compose(const auto& g) {
        std::vector<Var> parts;
        for (const Var& x : g.xs(0)) {
            const Meta meta = x.meta();
            List shape = list_of(meta.shape());
            if (shape.empty()) shape.push_back(1);
            if (shape.size() == 1 && least > 1) shape.insert(shape.begin(), 1);
            if (shape.size() == 2 && least > 2) shape.push_back(1);
            parts.push_back(reshape(x, shape));
        }
        return concat(parts, parts[0].ndim() == 1 ? 0 : axis);
    }
};
struct Hstack : StackAlong<1, 1> {
    static constexpr auto about =
        describe("catena.hstack", "y = arrays, joined along axis 1; 1-d arrays along axis 0",
                 in(Port("xs", "the arrays").variadic()), out("y"))
            .promotes()
            .example("xs=(2,3) xs=(2,1)")
            .example("xs=(2) xs=(3)");
};
struct Vstack : StackAlong<2, 0> {
    static constexpr auto about =
        describe("catena.vstack", "y = arrays, joined along axis 0; 1-d arrays are rows",
                 in(Port("xs", "the arrays").variadic()), out("y"))
            .promotes()
            .example("xs=(2,3) xs=(1,3)")
            .example("xs=(3) xs=(3)");
};
struct Dstack : StackAlong<3, 2> {
    static constexpr auto about =
        describe("catena.dstack",
                 "y = arrays, joined along axis 2; (n) is (1, n, 1), and (m, n) is (m, n, 1)",
                 in(Port("xs", "the arrays").variadic()), out("y"))
            .promotes()
            .example("xs=(2,3) xs=(2,3)")
            .example("xs=(2,3,1) xs=(2,3,2)");
};

struct PadSequence {
    static constexpr auto about =
        describe("catena.pad_sequence", "y = sequences of different lengths, stacked",
                 in(Port("xs", "the sequences, along axis 0").variadic()), out("y"),
                 attr("length", -1, "the length of all; -1: that of the longest"),
                 attr("padding", 0.0, "the number after a shorter sequence"))
            .promotes()
            .example("xs=(2,3) xs=(1,3)")
            .example("xs=(1) xs=(2) length=3 padding=2");

    static Var compose(const auto& g) {
        std::int64_t longest = 0;
        g.check_least_ndim(0, 1);
        List shape = list_of(g.x(0).meta().shape());
        for (std::size_t i = 0; i < g.n_x(); ++i) {
            const Meta x = g.x_meta(i);
            if (x.ndim > 0) shape[0] = x.dim(0);
            if (!std::ranges::equal(x.shape(), shape))
                g.check(false, ("xs[" + std::to_string(i) + "].shape").c_str(), shape, x.shape());
            longest = std::max(longest, x.dim(0));
        }
        const std::int64_t given = g.template attr<"length">();
        const std::int64_t length = given == -1 ? longest : given;
        g.check(length >= longest, "length", "at least " + text_of(longest), length);
        // Integers wrap, as in NumPy.
        const catena_dtype dtype = g.x(0).dtype();
        const bool wraps = dtype.code == CATENA_CODE_INT || dtype.code == CATENA_CODE_UINT;
        const Var padding =
            cast(full({}, g.template attr<"padding">(), wraps ? dtype_of<std::int64_t>() : dtype),
                 dtype);
        std::vector<Var> parts;
        for (const Var& x : g.xs(0)) {
            parts.push_back(x);
            shape[0] = length - x.dim(0);
            if (shape[0] > 0) parts.push_back(broadcast_to(padding, shape));
        }
        shape[0] = length;
        shape.insert(shape.begin(), static_cast<std::int64_t>(g.n_x()));
        return reshape(concat(parts, 0), shape);
    }
};

CATENA_FUNCTIONS(Stack, Hstack, Vstack, Dstack, PadSequence);

}  // namespace catena::plugins
