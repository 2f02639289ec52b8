// The gradient of a convolution with respect to its filters.
#pragma once

#include "convolution.hpp"

namespace catena::plugins {

struct Convolution2DGradW
    : ConvolutionFunction<ConvolutionProduct::data, ConvolutionProduct::forward,
                          ConvolutionProduct::filter> {
    static constexpr auto about =
        describe(
            "catena.convolution_2d_grad_w",
            "gW of y = convolution_2d(x, W): for each tap the sum of gy times what the tap saw",
            in(Port("x", "(N, C, H, W)"), Port("gy", "(N, out, oh, ow)")),
            out(Port("gW", "(out, C / groups, kh, kw)")),
            required<Ints>("ksize", "(kh, kw), one number for both").range(1, largest_step),
            stride_attr, pad_attr, cover_all_attr, dilate_attr, groups_attr)
            .internal()
            .since(3)
            .example("x=(2,3,5,4) gy=(2,2,5,4) ksize=[3] pad=[1]")
            .example("x=(2,2,6,7) gy=(2,3,3,6) ksize=[3,2] stride=[2,1] pad=[1,0]")
            .example("x=(2,2,6,5) gy=(2,3,3,2) ksize=[3] stride=[2] cover_all=true")
            .example("x=(1,4,7,5) gy=(1,6,5,2) ksize=[3,2] pad=[1,0] dilate=[2,3] groups=2");

    static void infer(const auto& s) {
        s.check_ndim(0, 4);
        s.check_ndim(1, 4);
        const Shape x = s.x(0);
        const Shape gy = s.x(1);
        const Pair filter = checked_pair(s, "ksize", s.template attr<"ksize">());
        const Pair places = checked_places(s, "ksize", filter, x);
        s.check_shape(1, {x[0], gy[1], places.y, places.x});
        check_groups(s, "x.shape[1]", x[1]);
        check_groups(s, "gy.shape[1]", gy[1]);
        s.y(0, {gy[1], x[1] / s.template attr<"groups">(), filter.y, filter.x});
    }
    static void gradient(const auto& g) { compose_gradient(g, g.template attr<"cover_all">()); }
};

CATENA_FUNCTIONS(Convolution2DGradW);

}  // namespace catena::plugins
