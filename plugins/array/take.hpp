// Slices of an array at indices along an axis, and the addition of slices at indices.
#pragma once

#include "indices.hpp"

namespace catena::plugins {

// The shape of the slices of x at indices along the call's axis.
class TakenShape {
public:
    TakenShape(const auto& s, Shape x, Shape indices) {
        const std::size_t axis = s.axis(s.template attr<"axis">(), x.size());
        ndim_ = x.size() - 1 + indices.size();
        s.check(ndim_ <= CATENA_MAX_NDIM, "y.ndim", "at most 16", ndim_);
        std::int64_t* d = std::copy_n(x.begin(), axis, shape_);
        d = std::ranges::copy(indices, d).out;
        std::ranges::copy(x.subspan(axis + 1), d);
    }
    operator Shape() const { return {shape_, ndim_}; }  // NOLINT: is a shape

private:
    std::int64_t shape_[CATENA_MAX_NDIM];
    std::size_t ndim_;
};

struct Take : ReadsPicked<true> {
    static constexpr auto about =
        describe("catena.take",
                 "y = the slices of x at indices along an axis, as numpy.take\n\n"
                 "The axes of the indices replace the axis. A negative index counts from the end. "
                 "An index out of range is an error; on CUDA, which does not wait for the indices, "
                 "its slice is NaN (0 for integers). The gradients of repeated indices add up.",
                 in("x", Port("indices", "of any shape").of("I").not_differentiable()), out("y"),
                 attr("axis", 0, "the axis; negative: from the last"))
            .example("x=(4,3) indices=(2)[0,3]")
            .example("x=(2,3,2) indices=(2,2)[-3,2] axis=1")
            .example("x=(2,3) indices=() axis=-1")
            .example("x=(5) indices=(7)[-5,4]");

    static void infer(const auto& s) { s.y(0, Shape(TakenShape(s, s.x(0), s.x(1)))); }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.put_rows_add">({g.gy(0), g.x(1)},
                                            {set("shape", g.x_shape(0)), g.same("axis")}));
    }
};

struct PutRowsAdd : AddsPicked<true> {
    static constexpr auto about =
        describe("catena.put_rows_add",
                 "y = zeros, to which the slices x are added at indices along an axis\n\nThe "
                 "gradient of catena.take.",
                 in(Port("x", "the slices"), Port("indices").of("I").not_differentiable()),
                 out("y"), required<Ints>("shape", "the shape of y"), attr("axis", 0, "the axis"))
            .internal()
            .example("x=(2,3) indices=(2)[0,3] shape=[4,3]")
            .example("x=(2,2,2,2) indices=(2,2)[-3,2] shape=[2,3,2] axis=1")
            .example("x=(2) indices=() shape=[2,3] axis=-1");

    static void infer(const auto& s) {
        const Ints shape = shape_attribute(s);
        s.check_shape(0, TakenShape(s, shape, s.x(1)));
        s.y(0, shape);
    }
    static void gradient(const auto& g) {
        g.gx(0, call<"catena.take">({g.gy(0), g.x(1)}, {g.same("axis")}));
    }
};

CATENA_FUNCTIONS(Take, PutRowsAdd);

}  // namespace catena::plugins
