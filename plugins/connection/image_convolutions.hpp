// Convolutions of images that are made of convolution_2d, matrix products and shifts.
#pragma once

#include <catena/plugin/precision.hpp>
#include <catena/plugin/windows.hpp>

#include "convolution.hpp"

namespace catena::plugins {

inline constexpr Port images = Port("x", "(N, C, H, W)");
inline constexpr Port bias_of_outputs = Port("b", "(out,)").optional();

struct DilatedConvolution2d {
    static constexpr auto about =
        describe(
            "catena.dilated_convolution_2d", "y = convolution_2d with another order of arguments",
            in(images, Port("W", "(out, C, kh, kw)"), bias_of_outputs),
            out(Port("y", "(N, out, oh, ow)")), stride_attr, pad_attr, dilate_attr, cover_all_attr)
            .example("x=(2,3,4,5) W=(2,3,2,2) b=(2,) pad=1 dilate=2")
            .example("x=(1,2,4,5) W=(2,2,2,2) dilate=[1,2] cover_all=true");

    static Var compose(const auto& g) {
        return call<"catena.convolution_2d">(
            {g.x(0), g.x(1), g.x(2)},
            {g.same("stride"), g.same("pad"), g.same("dilate"), g.same("cover_all")});
    }
};

struct DepthwiseConvolution2d {
    static constexpr auto about =
        describe("catena.depthwise_convolution_2d",
                 "y = the convolution of each channel with filters of its own",
                 in(images, Port("W", "(multiplier, C, kh, kw)"),
                    Port("b", "(multiplier C,)").optional()),
                 out(Port("y", "(N, multiplier C, oh, ow)")), stride_attr, pad_attr)
            .example("x=(2,3,4,5) W=(2,3,3,2) b=(6,) pad=1");

    static Var compose(const auto& g) {
        g.check_ndim(1, 4);
        const Meta w = g.x_meta(1);
        const Var W =
            reshape(transpose(g.x(1), {1, 0, 2, 3}), {w.dim(0) * w.dim(1), 1, w.dim(2), w.dim(3)});
        return call<"catena.convolution_2d">(
            {g.x(0), W, g.x(2)}, {g.same("stride"), g.same("pad"), set("groups", w.dim(1))});
    }
};

inline constexpr Attribute im2col_ksize =
    required<Ints>("ksize", "window: one number, or one for each axis").range(1, largest_step);

struct Im2col {
    static constexpr auto about =
        describe("catena.im2col", "y = the windows of images as columns", in(images),
                 out(Port("y", "(N, C kh kw, windows along y, windows along x)")), im2col_ksize,
                 stride_attr, pad_attr, cover_all_attr, dilate_attr)
            .example("x=(2,2,4,5) ksize=3")
            .example("x=(1,2,4,5) ksize=[2,3] stride=[1,2] pad=1 cover_all=true dilate=[2,1]");

    static Var compose(const auto& g) {
        g.check_ndim(0, 4);
        const Meta x = g.x_meta(0);
        const List k = per_axis<"ksize">(g, 2), s = per_axis<"stride">(g, 2),
                   p = per_axis<"pad">(g, 2), d = per_axis<"dilate">(g, 2);
        const bool cover = g.template attr<"cover_all">();
        check_parts(g, "ksize", k);
        List widths = {0, 0, 0, 0}, n;
        for (std::size_t a = 0; a < 2; ++a) {
            const std::int64_t size = x.shape()[a + 2], reach = plus(times(k[a] - 1, d[a]), 1);
            n.push_back(filter_positions(size, reach, s[a], p[a], cover));
            widths.push_back(p[a]);
            widths.push_back(std::max<std::int64_t>(0, reach + s[a] * (n[a] - 1) - size - p[a]));
        }
        const Var padded = pad(g.x(0), widths);
        std::vector<Var> columns;
        for (std::int64_t i = 0; i < k[0]; ++i) {
            const Var rows = every(padded, 2, i * d[0], s[0], n[0]);
            for (std::int64_t j = 0; j < k[1]; ++j)
                columns.push_back(every(rows, 3, j * d[1], s[1], n[1]));
        }
        return reshape(stack(columns, 2), {x.dim(0), x.dim(1) * k[0] * k[1], n[0], n[1]});
    }
};

struct LocalConvolution2d {
    static constexpr auto about = describe("catena.local_convolution_2d",
                                           "y = a convolution with other filters at each position",
                                           in(images, Port("W", "(out, oh, ow, C, kh, kw)"),
                                              Port("b", "(out, oh, ow)").optional()),
                                           out(Port("y", "(N, out, oh, ow)")), stride_attr)
                                      .example("x=(2,2,3,4) W=(2,2,3,2,2,2) b=(2,2,3)")
                                      .example("x=(2,1,5,6) W=(2,2,2,1,2,3) stride=[2,3]");

    static Var compose(const auto& g) {
        g.check_ndim(0, 4);
        g.check_ndim(1, 6);
        const Meta w = g.x_meta(1);
        const std::int64_t n = g.x(0).dim(0), out = w.dim(0), oh = w.dim(1), ow = w.dim(2);
        g.check_shape(2, {out, oh, ow});
        g.check(w.dim(4) > 0 && w.dim(5) > 0, "W.shape[4:]", "at least 1 along each axis",
                w.shape().subspan(4));
        const Var all =
            call<"catena.im2col">({g.x(0)}, {set("ksize", w.shape().subspan(4)), g.same("stride")});
        const std::int64_t size = w.dim(3) * w.dim(4) * w.dim(5);
        const bool fit = oh * ow == 0 || (all.dim(2) >= oh && all.dim(3) >= ow);
        g.check(all.dim(1) == size && fit, "W.shape",
                "filters for x " + text_of(g.x_meta(0).shape()), w.shape());
        const Var columns =
            reshape(get_item(all, {0, 0, 0, 0}, {n, size, oh, ow}), {n, size, oh * ow});
        const Var filters = reshape(g.x(1), {out, oh * ow, size});
        const Var products = matmul(transpose(columns, {2, 0, 1}), transpose(filters, {1, 2, 0}));
        const Var y = reshape(transpose(products, {1, 2, 0}), {n, out, oh, ow});
        return g.has(2) ? y + g.x(2) : y;
    }
};

inline constexpr std::int64_t shift_size[] = {3};

struct Shift {
    static constexpr auto about =
        describe("catena.shift",
                 "y = groups of channels, moved by different steps\n\n"
                 "It is a convolution with one 1 in each filter. The channels form kh kw groups.",
                 in(images), out(Port("y", "(N, C, H, W)")),
                 attr("ksize", Ints(shift_size),
                      "the filters' size, odd: one number, or one for each axis")
                     .range(1, largest_step),
                 dilate_attr)
            .example("x=(1,10,3,4)")
            .example("x=(2,4,4,5) ksize=[1,3] dilate=[2,1]");

    static Var compose(const auto& g) {
        g.check_ndim(0, 4);
        const Meta x = g.x_meta(0);
        const List k = per_axis<"ksize">(g, 2), d = per_axis<"dilate">(g, 2);
        g.check(k[0] % 2 == 1 && k[1] % 2 == 1, "ksize", "odd numbers", k, CATENA_E_INVALID);
        check_parts(g, "ksize", k);
        const std::int64_t groups = k[0] * k[1], size = x.dim(1) / groups;
        g.check(size > 0, "x.shape", "(N, C, H, W) with C >= " + text_of(groups), x.shape());
        const std::int64_t py = k[0] / 2 * d[0], px = k[1] / 2 * d[1];
        const Var padded = pad(g.x(0), {0, 0, 0, 0, py, py, px, px});
        std::vector<Var> parts;
        for (std::int64_t i = 0; i < groups; ++i) {
            // The last group is the one that stays.
            const std::int64_t place = i == groups / 2   ? groups - 1
                                       : i == groups - 1 ? groups / 2
                                                         : i;
            const std::int64_t top = py - (place / k[1] - k[0] / 2) * d[0];
            const std::int64_t left = px - (place % k[1] - k[1] / 2) * d[1];
            const std::int64_t end = i == groups - 1 ? x.dim(1) : (i + 1) * size;
            parts.push_back(get_item(padded, {0, i * size, top, left},
                                     {x.dim(0), end, top + x.dim(2), left + x.dim(3)}));
        }
        return concat(parts, 1);
    }
};

struct DeformableConvolution2dSampler {
    static constexpr auto about =
        describe(
            "catena.deformable_convolution_2d_sampler",
            "y = a convolution whose filters' elements are moved by offsets in pixels",
            in(images, Port("offset", "(N, 2 kh kw, oh, ow): those along x, then those along y"),
               Port("W", "(out, C, kh, kw)"), bias_of_outputs),
            out(Port("y", "(N, out, oh, ow)")), stride_attr, pad_attr)
            .example("x=(1,2,4,5) offset=(1,8,3,4)[0.1,0.4] W=(3,2,2,2) b=(3,)")
            .example("x=(1,2,4,5) offset=(1,12,3,3)[-0.4,-0.1] W=(2,2,3,2) stride=[1,2] pad=1");

    static Var compose(const auto& g) {
        for (std::size_t i = 0; i < 3; ++i) g.check_ndim(i, 4);
        const Meta x = g.x_meta(0), moved = g.x_meta(1), w = g.x_meta(2);
        const std::int64_t n = x.dim(0), kh = w.dim(2), kw = w.dim(3), out = w.dim(0);
        const std::int64_t oh = moved.dim(2), ow = moved.dim(3), rows = x.dim(1) * kh * kw;
        const List s = per_axis<"stride">(g, 2), p = per_axis<"pad">(g, 2);
        g.check(moved.dim(1) == 2 * kh * kw, "offset.shape[1]", text_of(2 * kh * kw), moved.dim(1));
        g.check(w.dim(1) == x.dim(1), "W.shape[1]", text_of(x.dim(1)), w.dim(1));
        g.check_shape(3, {out});
        const Var image = widened(g.x(0)), W = widened(g.x(2));
        const Var offset = reshape(widened(g.x(1)), {n, 2, kh, kw, oh, ow});
        // Coordinates along an axis of the padded image, from -1 to 1.
        const auto places = [&](std::size_t a, std::int64_t channel) {
            const std::int64_t taps = w.shape()[a + 2], count = moved.shape()[a + 2];
            const Var at = reshape(arange(taps, image.dtype()), {taps, 1}) +
                           arange(count, image.dtype(), 0, s[a]);
            List shape = {1, 1, 1, 1, 1, 1};
            shape[a + 2] = taps;
            shape[a + 4] = count;
            const auto last =
                static_cast<double>(std::max<std::int64_t>(x.shape()[a + 2] + 2 * p[a] - 1, 1));
            return (slice(offset, 1, channel, channel + 1) + reshape(at, shape)) * (2 / last) - 1;
        };
        const Var points =
            reshape(concat({places(1, 0), places(0, 1)}, 1), {n, 2, kh * kw, oh * ow});
        const Var columns = call<"catena.spatial_transformer_sampler">(
            {pad(image, {0, 0, 0, 0, p[0], p[0], p[1], p[1]}), points});
        const Var products = matmul(reshape(W, {out, rows}), reshape(columns, {n, rows, oh * ow}));
        const Var y = reshape(in_dtype(products, x.dtype), {n, out, oh, ow});
        return g.has(3) ? y + reshape(g.x(3), {1, out, 1, 1}) : y;
    }
};

CATENA_FUNCTIONS(DilatedConvolution2d, DepthwiseConvolution2d, Im2col, LocalConvolution2d, Shift,
                 DeformableConvolution2dSampler);

}  // namespace catena::plugins
