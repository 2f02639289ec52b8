// Transposed convolution: the gradient of a convolution with respect to its images.
#pragma once

#include "convolution.hpp"

namespace catena::plugins {

struct Deconvolution2D : ConvolutionFunction<ConvolutionProduct::forward,
                                             ConvolutionProduct::filter, ConvolutionProduct::data> {
    static constexpr auto about =
        describe(
            "catena.deconvolution_2d",
            "y = transposed convolution, plus b: the sum of the filters W, weighted with x, at all "
            "positions",
            in(Port("x", "(N, C, H, W)"), Port("W", "(C, out / groups, kh, kw)"),
               Port("b", "(out,)").optional()),
            out(Port("y",
                     "(N, out, stride (H - 1) + dilate (kh - 1) + 1 - 2 pad, the same of W and "
                     "kw), or outsize in place of the last two")),
            stride_attr, pad_attr,
            attr("outsize", Ints{},
                 "height and width of y, or one number for both, for which convolution_2d, with or "
                 "without cover_all, gives the size of x; empty: the smallest without cover_all")
                .range(0, largest_step),
            dilate_attr, groups_attr)
            .since(3)
            .example("x=(2,3,3,4) W=(3,2,3,3) b=(2,) pad=[1]")
            .example("x=(2,2,3,2) W=(2,3,2,3) b=(3,) stride=[2,3] pad=[0,1] outsize=[7,4]")
            .example("x=(1,2,2,2) W=(2,3,1,1) stride=[2]")
            .example("x=(1,1,3,2) W=(1,2,3,3) stride=[2] pad=[1] outsize=[4,3]")
            .example("x=(1,4,3,2) W=(4,3,3,2) b=(6,) pad=[1,0] dilate=[2,3] groups=2");

    static void infer(const auto& s) {
        s.check_ndim(0, 4);
        s.check_ndim(1, 4);
        const Shape x = s.x(0);
        const Shape w = s.x(1);
        s.check(x[1] == w[0], "x.shape[1]", w[0], x[1]);
        check_groups(s, "x.shape[1]", x[1]);
        const std::int64_t channels = times(w[1], s.template attr<"groups">());
        s.check_shape(2, {channels});
        const Pair stride = checked_pair(s, "stride", s.template attr<"stride">());
        const Pair pad = checked_pair(s, "pad", s.template attr<"pad">());
        const Pair filter = {w[2], w[3]}, places = {x[2], x[3]};
        const Pair reach = reach_of(filter, checked_pair(s, "dilate", s.template attr<"dilate">()));
        const Ints outsize = s.template attr<"outsize">();
        const Pair size = outsize.empty()
                              ? Pair{plus(times(stride.y, x[2] - 1), reach.y) - times(2, pad.y),
                                     plus(times(stride.x, x[3] - 1), reach.x) - times(2, pad.x)}
                              : checked_pair(s, "outsize", outsize);
        if (outsize.empty() && (size.y < 1 || size.x < 1)) [[unlikely]]
            s.check(false, "y.shape[2:]", "at least (1, 1)", pair_text(size));
        check_fit(s, "W.shape[2:]", filter, reach, size, pad, beyond_of(stride, true));
        if (!leads(size, reach, stride, pad, false, places) &&
            !leads(size, reach, stride, pad, true, places)) [[unlikely]] {
            const Pair back = filter_positions(size, reach, stride, pad, false);
            std::string got = pair_text(size) + ", taken to " + pair_text(back);
            if (!leads(size, reach, stride, pad, true, back))
                got += ", with cover_all to " +
                       pair_text(filter_positions(size, reach, stride, pad, true));
            s.check(false, "outsize", "a size that convolution_2d takes to " + pair_text(places),
                    got, CATENA_E_INVALID);
        }
        s.y(0, {x[0], channels, size.y, size.x});
    }
    static void gradient(const auto& g) { compose_gradient(g, covers(g)); }

private:
    static bool leads(Pair size, Pair reach, Pair stride, Pair pad, bool cover, Pair places) {
        const Pair got = filter_positions(size, reach, stride, pad, cover);
        return got.y == places.y && got.x == places.x;
    }
    // Whether convolution_2d needs cover_all to map the size of y to the size of x.
    static bool covers(const auto& g) {
        const Ints outsize = g.template attr<"outsize">();
        const Shape x = g.x_shape(0), w = g.x_shape(1);
        return !outsize.empty() &&
               !leads(pair_of(outsize),
                      reach_of({w[2], w[3]}, pair_of(g.template attr<"dilate">())),
                      pair_of(g.template attr<"stride">()), pair_of(g.template attr<"pad">()),
                      false, {x[2], x[3]});
    }
};

CATENA_FUNCTIONS(Deconvolution2D);

}  // namespace catena::plugins
