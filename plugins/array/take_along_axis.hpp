// Elements of an array at an index for each position along an axis, and the addition at indices.
#pragma once

#include "indices.hpp"

namespace catena::plugins {

// Throws unless indices and x have the same shape except along the call's axis.
inline void check_along(const auto& s, Shape x, Shape indices) {
    const std::size_t axis = s.axis(s.template attr<"axis">(), x.size());
    bool fits = x.size() == indices.size();
    for (std::size_t d = 0; fits && d < x.size(); ++d) fits = d == axis || x[d] == indices[d];
    if (!fits) [[unlikely]]
        s.check(false, "indices.shape", text_of(x) + " but for axis " + text_of(axis), indices);
}

struct TakeAlongAxis : ReadsPicked<false> {
    static constexpr auto about =
        describe(
            "catena.take_along_axis",
            "y = the elements of x at an index for each position along an axis, as "
            "numpy.take_along_axis and torch.gather\n\n"
            "For axis 1 of three, y[i, j, k] = x[i, indices[i, j, k], k]. A negative index "
            "counts from the end. An index out of range is an error; on CUDA, which does not "
            "wait for the indices, its element is NaN (0 for integers). The gradients of "
            "repeated indices add up.",
            in("x",
               Port("indices", "the shape of x but for the axis").of("I").not_differentiable()),
            out(Port("y", "the shape of indices")),
            attr("axis", -1, "the axis; negative: from the last"))
            .example("x=(2,3) indices=(2,5)[0,2]")
            .example("x=(4,3) indices=(2,3)[-4,3] axis=0")
            .example("x=(2,3,2) indices=(2,4,2)[0,2] axis=1");

    static void infer(const auto& s) {
        check_along(s, s.x(0), s.x(1));
        s.y(0, s.x(1));
    }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.put_along_axis_add">({g.gy(0), g.x(1)},
                                                  {set("shape", g.x_shape(0)), g.same("axis")}));
    }
};

struct PutAlongAxisAdd : AddsPicked<false> {
    static constexpr auto about =
        describe("catena.put_along_axis_add",
                 "y = zeros, to which x is added at an index for each position along an axis\n\n"
                 "The gradient of catena.take_along_axis.",
                 in("x", Port("indices", "the shape of x").of("I").not_differentiable()), out("y"),
                 required<Ints>("shape", "the shape of y"), attr("axis", -1, "the axis"))
            .internal()
            .example("x=(2,5) indices=(2,5)[0,2] shape=[2,3]")
            .example("x=(2,3) indices=(2,3)[-4,3] shape=[4,3] axis=0")
            .example("x=(2,4,2) indices=(2,4,2)[0,2] shape=[2,3,2] axis=1");

    static void infer(const auto& s) {
        const Ints shape = shape_attribute(s);
        check_along(s, shape, s.x(1));
        s.check_shape(0, s.x(1));
        s.y(0, shape);
    }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.take_along_axis">({g.gy(0), g.x(1)}, {g.same("axis")}));
    }
};

// For scatter(): which source each element gets. The rest is a composition.
struct LastAlongAxis {
    static constexpr auto about =
        describe("catena.last_along_axis",
                 "y = 1 + the last position along an axis that has an index, 0 for none",
                 in(Port("indices").of("I")), out(Port("y").of("I")),
                 required<Ints>("shape", "the shape of y"), attr("axis", -1, "the axis"))
            .not_differentiable()
            .internal()
            .example("indices=(2,5)[0,2] shape=[2,3]")
            .example("indices=(2,3)[-4,3] shape=[4,3] axis=0");
    using types = Rows<Row<std::int32_t>, Row<std::int64_t>>;
    static constexpr bool any_device = true;

    static void infer(const auto& s) {
        const Ints shape = shape_attribute(s);
        check_along(s, shape, s.x(0));
        s.y(0, shape);
    }
    template <class I>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto y = call.template y<I>(0);
        set_last(call, picked(call, y.shape, call.template x<I>(0), false), y);
    }
};

CATENA_FUNCTIONS(TakeAlongAxis, PutAlongAxisAdd, LastAlongAxis);

}  // namespace catena::plugins
