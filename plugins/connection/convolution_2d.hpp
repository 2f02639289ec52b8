// Convolution of images with filters.
#pragma once

#include <catena/plugin/reduce.hpp>

#include "convolution_kernels.hpp"

namespace catena::plugins {

struct Convolution2D {
    static constexpr auto about =
        describe("catena.convolution_2d",
                 "y = cross-correlation of the images x with the filters W, plus b\n\n"
                 "W is not flipped. Without cover_all, the filter stays within the padded image. "
                 "With cover_all, there is one more position along an axis whose last elements "
                 "would not be covered; elements beyond the padding count as 0.",
                 in(Port("x", "(N, C, H, W)"), Port("W", "(out, C, kh, kw)"),
                    Port("b", "(out,)").optional()),
                 out(Port("y",
                          "(N, out, (H + 2 pad - kh) / stride + 1, (W + 2 pad - kw) / stride + "
                          "1)")),
                 stride_attr, pad_attr, cover_all_attr)
            .since(2)
            .example("x=(2,3,5,4) W=(2,3,3,3) b=(2,) pad=[1]")
            .example("x=(2,2,6,7) W=(3,2,3,2) b=(3,) stride=[2,1] pad=[1,0]")
            .example("x=(2,3,4,4) W=(2,3,1,1)")
            .example("x=(1,2,3,4) W=(3,2,3,4) stride=[2]")
            .example("x=(2,2,6,5) W=(3,2,3,3) stride=[2] cover_all=true");
    static constexpr auto retain_x = ports(0, 1);

    static void infer(const auto& s) {
        check_ndim(s, 0, "x.ndim");
        check_ndim(s, 1, "W.ndim");
        const Shape x = s.x(0);
        const Shape w = s.x(1);
        s.check(x[1] == w[1], "x.shape[1]", w[1], x[1]);
        check_bias(s, 2, w[0]);
        const Pair stride = checked_pair(s, "stride", s.template attr<"stride">());
        const Pair pad = checked_pair(s, "pad", s.template attr<"pad">());
        const bool cover = s.template attr<"cover_all">();
        const Pair side = {x[2], x[3]}, filter = {w[2], w[3]};
        check_fit(s, "W.shape[2:]", filter, side, pad, beyond_of(stride, cover));
        const Pair places = filter_positions(side, filter, stride, pad, cover);
        s.y(0, {x[0], w[0], places.y, places.x});
    }
    static void gradient(const auto& g) {
        const Var gy = g.gy(0);
        const auto stride = set("stride", g.template attr<"stride">());
        const auto pad = set("pad", g.template attr<"pad">());
        if (g.wants(0))
            g.gx(0, call<"catena.deconvolution_2d">(
                        {gy, g.x(1)}, {stride, pad, set("outsize", g.x_shape(0).subspan(2))}));
        if (g.wants(1))
            g.gx(1, call<"catena.convolution_2d_grad_w">(
                        {g.x(0), gy}, {set("ksize", g.x_shape(1).subspan(2)), stride, pad,
                                       set("cover_all", g.template attr<"cover_all">())}));
        if (g.wants(2)) g.gx(2, sum(gy, channel_axes, false));
    }

    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase == CATENA_PHASE_FORWARD)
            plan.scratch_bytes = scratch_for<T>(
                call,
                convolution_of(call, call.template x<T>(0).shape, call.template y<T>(0).shape,
                               call.template x<T>(1).shape),
                {true, false, false});
        else
            plan.scratch_bytes = scratch_for<T>(
                call,
                convolution_of(call, call.template x<T>(0).shape, call.template gy<T>(0).shape,
                               call.template x<T>(1).shape),
                {false, call.wants(0), call.wants(1)});
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(1);
        const auto y = call.template y<T>(0);
        convolve(call, convolution_of(call, x.shape, y.shape, w.shape), x.data, w.data,
                 call.template x<T>(2).data, y.data, call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(1);
        const auto gy = call.template gy<T>(0);
        const Convolution c = convolution_of(call, x.shape, gy.shape, w.shape);
        if (const auto gx = call.template gx<T>(0))
            convolve_back(call, c, gy.data, w.data, static_cast<const T*>(nullptr), gx.data,
                          call.adds(0));
        if (const auto gw = call.template gx<T>(1))
            correlate(call, c, x.data, gy.data, gw.data, call.adds(1));
        if (const auto gb = call.template gx<T>(2)) sum_channels(call, gy, gb.data, call.adds(2));
    }
};

CATENA_FUNCTIONS(Convolution2D);

}  // namespace catena::plugins
