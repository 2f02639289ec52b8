// The gradient of a convolution for its filters.
#pragma once

#include "convolution_kernels.hpp"

namespace catena::plugins {

struct Convolution2DGradW {
    static constexpr auto about =
        describe(
            "catena.convolution_2d_grad_w",
            "gW of y = convolution_2d(x, W): for each tap the sum of gy times what the tap saw",
            in(Port("x", "(N, C, H, W)"), Port("gy", "(N, out, oh, ow)")),
            out(Port("gW", "(out, C, kh, kw)")),
            required<Ints>("ksize", "(kh, kw), one number for both").range(1, largest_step),
            stride_attr, pad_attr, cover_all_attr)
            .internal()
            .since(2)
            .example("x=(2,3,5,4) gy=(2,2,5,4) ksize=[3] pad=[1]")
            .example("x=(2,2,6,7) gy=(2,3,3,6) ksize=[3,2] stride=[2,1] pad=[1,0]")
            .example("x=(2,2,6,5) gy=(2,3,3,2) ksize=[3] stride=[2] cover_all=true");
    static constexpr auto retain_x = ports(0, 1);

    static void infer(const auto& s) {
        check_ndim(s, 0, "x.ndim");
        check_ndim(s, 1, "gy.ndim");
        const Shape x = s.x(0);
        const Shape gy = s.x(1);
        const Pair filter = checked_pair(s, "ksize", s.template attr<"ksize">());
        const Pair stride = checked_pair(s, "stride", s.template attr<"stride">());
        const Pair pad = checked_pair(s, "pad", s.template attr<"pad">());
        const bool cover = s.template attr<"cover_all">();
        check_fit(s, "ksize", filter, {x[2], x[3]}, pad, beyond_of(stride, cover));
        const Pair places = filter_positions({x[2], x[3]}, filter, stride, pad, cover);
        const std::int64_t expected[] = {x[0], gy[1], places.y, places.x};
        s.check(std::ranges::equal(gy, expected), "gy.shape", Shape(expected), gy);
        s.y(0, {gy[1], x[1], filter.y, filter.x});
    }
    static void gradient(const auto& g) {
        const Var ggw = g.gy(0);
        const auto stride = set("stride", g.template attr<"stride">());
        const auto pad = set("pad", g.template attr<"pad">());
        if (g.wants(0))
            g.gx(0, call<"catena.deconvolution_2d">(
                        {g.x(1), ggw}, {stride, pad, set("outsize", g.x_shape(0).subspan(2))}));
        if (g.wants(1))
            g.gx(1, call<"catena.convolution_2d">(
                        {g.x(0), ggw},
                        {stride, pad, set("cover_all", g.template attr<"cover_all">())}));
    }

    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase == CATENA_PHASE_FORWARD)
            plan.scratch_bytes = scratch_for<T>(
                call,
                convolution_of(call, call.template x<T>(0).shape, call.template x<T>(1).shape,
                               call.template y<T>(0).shape),
                {false, false, true});
        else
            plan.scratch_bytes = scratch_for<T>(
                call,
                convolution_of(call, call.template x<T>(0).shape, call.template x<T>(1).shape,
                               call.template gy<T>(0).shape),
                {call.wants(1), call.wants(0), false});
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto gy = call.template x<T>(1);
        const auto gw = call.template y<T>(0);
        correlate(call, convolution_of(call, x.shape, gy.shape, gw.shape), x.data, gy.data, gw.data,
                  call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto gy = call.template x<T>(1);
        const auto ggw = call.template gy<T>(0);
        const Convolution c = convolution_of(call, x.shape, gy.shape, ggw.shape);
        const T* const no_bias = nullptr;
        if (const auto gx = call.template gx<T>(0))
            convolve_back(call, c, gy.data, ggw.data, no_bias, gx.data, call.adds(0));
        if (const auto ggy = call.template gx<T>(1))
            convolve(call, c, x.data, ggw.data, no_bias, ggy.data, call.adds(1));
    }
};

CATENA_FUNCTIONS(Convolution2DGradW);

}  // namespace catena::plugins
