// Transposed convolution: what a convolution's gradient does to images.
#pragma once

#include <catena/plugin/reduce.hpp>

#include "convolution_kernels.hpp"

namespace catena::plugins {

struct Deconvolution2D {
    static constexpr auto about =
        describe(
            "catena.deconvolution_2d",
            "y = transposed convolution, plus b: the sum of the filters W, weighted with x, at all "
            "positions",
            in(Port("x", "(N, C, H, W)"), Port("W", "(C, out, kh, kw)"),
               Port("b", "(out,)").optional()),
            out(Port("y",
                     "(N, out, stride (H - 1) + kh - 2 pad, stride (W - 1) + kw - 2 pad), "
                     "or outsize in place of the last two")),
            stride_attr, pad_attr,
            attr("outsize", Ints{},
                 "height and width of y, or one number for both, for which convolution_2d, with or "
                 "without cover_all, gives the size of x; empty: the smallest without cover_all")
                .range(1, largest_step))
            .since(2)
            .example("x=(2,3,3,4) W=(3,2,3,3) b=(2,) pad=[1]")
            .example("x=(2,2,3,2) W=(2,3,2,3) b=(3,) stride=[2,3] pad=[0,1] outsize=[7,4]")
            .example("x=(1,2,2,2) W=(2,3,1,1) stride=[2]")
            .example("x=(1,1,3,2) W=(1,2,3,3) stride=[2] pad=[1] outsize=[4,3]");
    static constexpr auto retain_x = ports(0, 1);

    static void infer(const auto& s) {
        check_ndim(s, 0, "x.ndim");
        check_ndim(s, 1, "W.ndim");
        const Shape x = s.x(0);
        const Shape w = s.x(1);
        s.check(x[1] == w[0], "x.shape[1]", w[0], x[1]);
        check_bias(s, 2, w[1]);
        const Pair stride = checked_pair(s, "stride", s.template attr<"stride">());
        const Pair pad = checked_pair(s, "pad", s.template attr<"pad">());
        const Ints outsize = s.template attr<"outsize">();
        const Pair size = outsize.empty()
                              ? Pair{plus(times(stride.y, x[2] - 1), w[2]) - times(2, pad.y),
                                     plus(times(stride.x, x[3] - 1), w[3]) - times(2, pad.x)}
                              : checked_pair(s, "outsize", outsize);
        if (size.y < 1 || size.x < 1) [[unlikely]]
            s.check(false, "y.shape[2:]", "at least (1, 1)", pair_text(size));
        const Pair filter = {w[2], w[3]}, places = {x[2], x[3]};
        check_fit(s, "W.shape[2:]", filter, size, pad, beyond_of(stride, true));
        if (!leads(size, filter, stride, pad, false, places) &&
            !leads(size, filter, stride, pad, true, places)) [[unlikely]] {
            const Pair back = filter_positions(size, filter, stride, pad, false);
            std::string got = pair_text(size) + ", taken to " + pair_text(back);
            if (!leads(size, filter, stride, pad, true, back))
                got += ", with cover_all to " +
                       pair_text(filter_positions(size, filter, stride, pad, true));
            s.check(false, "outsize", "a size that convolution_2d takes to " + pair_text(places),
                    got, CATENA_E_INVALID);
        }
        s.y(0, {x[0], w[1], size.y, size.x});
    }
    static void gradient(const auto& g) {
        const Var gy = g.gy(0);
        const auto stride = set("stride", g.template attr<"stride">());
        const auto pad = set("pad", g.template attr<"pad">());
        const auto cover = set("cover_all", covers(g));
        if (g.wants(0)) g.gx(0, call<"catena.convolution_2d">({gy, g.x(1)}, {stride, pad, cover}));
        if (g.wants(1))
            g.gx(1, call<"catena.convolution_2d_grad_w">(
                        {gy, g.x(0)}, {set("ksize", g.x_shape(1).subspan(2)), stride, pad, cover}));
        if (g.wants(2)) g.gx(2, sum(gy, channel_axes, false));
    }

    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase == CATENA_PHASE_FORWARD)
            plan.scratch_bytes = scratch_for<T>(
                call,
                convolution_of(call, call.template y<T>(0).shape, call.template x<T>(0).shape,
                               call.template x<T>(1).shape),
                {false, true, false});
        else
            plan.scratch_bytes = scratch_for<T>(
                call,
                convolution_of(call, call.template gy<T>(0).shape, call.template x<T>(0).shape,
                               call.template x<T>(1).shape),
                {call.wants(0), false, call.wants(1)});
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(1);
        const auto y = call.template y<T>(0);
        convolve_back(call, convolution_of(call, y.shape, x.shape, w.shape), x.data, w.data,
                      call.template x<T>(2).data, y.data, call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(1);
        const auto gy = call.template gy<T>(0);
        const Convolution c = convolution_of(call, gy.shape, x.shape, w.shape);
        if (const auto gx = call.template gx<T>(0))
            convolve(call, c, gy.data, w.data, static_cast<const T*>(nullptr), gx.data,
                     call.adds(0));
        if (const auto gw = call.template gx<T>(1))
            correlate(call, c, gy.data, x.data, gw.data, call.adds(1));
        if (const auto gb = call.template gx<T>(2)) sum_channels(call, gy, gb.data, call.adds(2));
    }

private:
    static bool leads(Pair size, Pair filter, Pair stride, Pair pad, bool cover, Pair places) {
        const Pair got = filter_positions(size, filter, stride, pad, cover);
        return got.y == places.y && got.x == places.x;
    }
    // Whether it takes cover_all to come back to x.
    static bool covers(const auto& g) {
        const Ints outsize = g.template attr<"outsize">();
        const Shape x = g.x_shape(0), w = g.x_shape(1);
        return !outsize.empty() &&
               !leads(pair_of(outsize), {w[2], w[3]}, pair_of(g.template attr<"stride">()),
                      pair_of(g.template attr<"pad">()), false, {x[2], x[3]});
    }
};

CATENA_FUNCTIONS(Deconvolution2D);

}  // namespace catena::plugins
