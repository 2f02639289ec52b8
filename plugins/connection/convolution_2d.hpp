// Convolution of images with filters.
#pragma once

#include "convolution.hpp"

namespace catena::plugins {

struct Convolution2D : ConvolutionFunction<ConvolutionProduct::data, ConvolutionProduct::filter,
                                           ConvolutionProduct::forward> {
    static constexpr auto about =
        describe("catena.convolution_2d",
                 "y = cross-correlation of the images x with the filters W, plus b\n\n"
                 "W is not flipped. Without cover_all, the filter stays within the padded image. "
                 "With cover_all, there is one more position along an axis whose last elements "
                 "would not be covered; elements beyond the padding count as 0.",
                 in(Port("x", "(N, C, H, W)"), Port("W", "(out, C / groups, kh, kw)"),
                    Port("b", "(out,)").optional()),
                 out(Port("y",
                          "(N, out, (H + 2 pad - (kh - 1) dilate - 1) / stride + 1, the same of "
                          "W and kw)")),
                 stride_attr, pad_attr, cover_all_attr, dilate_attr, groups_attr)
            .since(3)
            .example("x=(2,3,5,4) W=(2,3,3,3) b=(2,) pad=[1]")
            .example("x=(2,2,6,7) W=(3,2,3,2) b=(3,) stride=[2,1] pad=[1,0]")
            .example("x=(2,3,4,4) W=(2,3,1,1)")
            .example("x=(1,2,3,4) W=(3,2,3,4) stride=[2]")
            .example("x=(2,2,6,5) W=(3,2,3,3) stride=[2] cover_all=true")
            .example("x=(1,4,7,5) W=(6,2,3,2) b=(6,) pad=[1,0] dilate=[2,3] groups=2")
            .example("x=(2,3,4,3) W=(6,1,2,2) groups=3");

    static void infer(const auto& s) {
        s.check_ndim(0, 4);
        s.check_ndim(1, 4);
        const Shape x = s.x(0);
        const Shape w = s.x(1);
        const std::int64_t channels = times(w[1], s.template attr<"groups">());
        s.check(x[1] == channels, "x.shape[1]", channels, x[1]);
        check_groups(s, "W.shape[0]", w[0]);
        s.check_shape(2, {w[0]});
        const Pair places = checked_places(s, "W.shape[2:]", {w[2], w[3]}, x);
        s.y(0, {x[0], w[0], places.y, places.x});
    }
    static void gradient(const auto& g) { compose_gradient(g, g.template attr<"cover_all">()); }
};

CATENA_FUNCTIONS(Convolution2D);

}  // namespace catena::plugins
