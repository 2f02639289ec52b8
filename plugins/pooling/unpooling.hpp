// The transposes of pooling.
#pragma once

#include <catena/plugin/windows.hpp>

#include "windows.hpp"

namespace catena::plugins {

inline constexpr Attribute outsize_attr =
    attr("outsize", Ints{}, "the extents of the images; empty: the smallest that fit")
        .range(0, largest_extent);

// Windows along n axes of images, of which there are those along each axis of x behind C.
struct Unpooling {
    Unpooling(const auto& g, std::size_t n)
        : ksize(per_axis<"ksize">(g, n)),
          stride(per_axis<"stride">(g, n, ksize)),
          pad(per_axis<"pad">(g, n)) {
        const Meta x = g.x_meta(0);
        const bool cover = g.template attr<"cover_all">();
        List least;
        for (std::size_t d = 0; d < n; ++d)
            least.push_back(plus(times(stride[d], x.shape()[d + 2] - 1), ksize[d]) -
                            times(2, pad[d]) - (cover ? stride[d] - 1 : 0));
        sizes = per_axis<"outsize">(g, n, least);
    }

    List ksize, stride, pad, sizes;
};

// n: the number of axes; 0 for any.
template <std::size_t n>
struct UnpoolingAlong {
    static constexpr auto about_as(const char* name, const char* doc) {
        return describe(name, doc, in(Port("x", "(N, C, ...)")), out(Port("y", "(N, C, ...)")),
                        ksize_attr, stride_attr, pad_attr, outsize_attr, cover_all_attr);
    }
    static Var compose(const auto& g) {
        Unpooling u(g, image_axes(g, n));
        const Meta x = g.x_meta(0);
        const Shape places = x.shape().subspan(2);
        for (std::size_t d = 0; d < places.size(); ++d) {
            const Side side{u.sizes[d], u.ksize[d], u.stride[d], u.pad[d]};
            g.check(side.positions(g.template attr<"cover_all">()) == places[d], "outsize",
                    "one with " + text_of(places) + " windows", u.sizes);
            u.sizes[d] = std::max<std::int64_t>(u.sizes[d], 0);
        }
        List shape = {x.dim(0), x.dim(1)}, ones = {1, 1}, images = {x.dim(0) * x.dim(1), 1};
        shape.insert(shape.end(), u.sizes.begin(), u.sizes.end());
        if (size_of(Ints(u.sizes)) == 0) {
            List end = shape;
            for (std::int64_t& each : std::span(end).subspan(2))
                each = std::min<std::int64_t>(each, 1);
            return broadcast_to(get_item(g.x(0), List(end.size()), end), shape);
        }
        ones.insert(ones.end(), u.ksize.begin(), u.ksize.end());
        images.insert(images.end(), places.begin(), places.end());
        const Var y = call<"catena.deconvolution_nd">(
            {reshape(g.x(0), images), full(ones, 1, x.dtype), Var::missing()},
            {set("stride", Ints(u.stride)), set("pad", Ints(u.pad)),
             set("outsize", Ints(u.sizes))});
        return reshape(y, shape);
    }
};
struct UnpoolingNd : UnpoolingAlong<0> {
    static constexpr auto about =
        about_as("catena.unpooling_nd",
                 "y = x with each element repeated in its window: the transpose of a sum over "
                 "windows")
            .example("x=(2,3,2,3) ksize=2 cover_all=false outsize=[5,7]")
            .example("x=(1,2,2,3,2) ksize=2 stride=1 pad=1 cover_all=false");
};
struct Unpooling1d : UnpoolingAlong<1> {
    static constexpr auto about = about_as("catena.unpooling_1d", "y = unpooling_nd along one axis")
                                      .example("x=(2,3,3) ksize=3 stride=2");
};
struct Unpooling2d : UnpoolingAlong<2> {
    static constexpr auto about = about_as("catena.unpooling_2d", "y = unpooling_nd along two axes")
                                      .example("x=(2,3,2,3) ksize=3 stride=2 pad=1");
};
struct Unpooling3d : UnpoolingAlong<3> {
    static constexpr auto about =
        about_as("catena.unpooling_3d", "y = unpooling_nd along three axes")
            .example("x=(1,2,2,3,2) ksize=2 outsize=[4,5,3]");
};

struct Upsampling2d {
    static constexpr auto about =
        describe("catena.upsampling_2d",
                 "Places each element of x where the maximum of its window was; other pixels are 0",
                 in(Port("x", "(N, C, H, W)"),
                    Port("indexes", "(N, C, H, W): the places in the windows, row by row")
                        .of("I")
                        .not_differentiable()),
                 out(Port("y", "(N, C, height, width)")), ksize_attr, stride_attr, pad_attr,
                 outsize_attr, cover_all_attr)
            .example("x=(1,2,2,3) indexes=(1,2,2,3)[0,3] ksize=2")
            .example("x=(1,2,2,3) indexes=(1,2,2,3)[0,8] ksize=3 stride=2 pad=1")
            .example("x=(1,1,2,2) indexes=(1,1,2,2)[0,3] ksize=2 outsize=[4,3]");

    static Var compose(const auto& g) {
        g.check_ndim(0, 4);
        const Meta x = g.x_meta(0);
        g.check_shape(1, x.shape());
        const Unpooling u(g, 2);
        const std::int64_t h = x.dim(2), w = x.dim(3), planes = times(x.dim(0), x.dim(1));
        // Padded images that contain all windows.
        List extents;
        for (std::size_t a = 0; a < 2; ++a)
            extents.push_back(std::max(plus(u.sizes[a], u.pad[a]),
                                       plus(times(u.stride[a], x.shape()[a + 2] - 1), u.ksize[a])));
        const std::int64_t height = extents[0], width = extents[1];
        const Var index = cast(g.x(1), dtype_of<std::int64_t>());
        // The quotient of integers + 0.5 does not round to the next integer.
        const Var row = cast(call<"catena.floor">({(cast(index, dtype_of<double>()) + 0.5) *
                                                   (1 / static_cast<double>(u.ksize[1]))}),
                             dtype_of<std::int64_t>());
        const auto along = [](std::int64_t n, std::int64_t step, const IntList& shape) {
            return reshape(arange(n, dtype_of<std::int64_t>(), 0, step), shape);
        };
        const Var place = index + row * static_cast<double>(width - u.ksize[1]) +
                          along(h, u.stride[0] * width, {h, 1}) + along(w, u.stride[1], {w});
        const Var in_all =
            reshape(place, {planes, h * w}) + along(planes, height * width, {planes, 1});
        const Var y =
            call<"catena.index_add">({full({times(planes, times(height, width))}, 0, x.dtype),
                                      reshape(in_all, {-1}), reshape(g.x(0), {-1})},
                                     {set("axis", 0)});
        return get_item(reshape(y, {x.dim(0), x.dim(1), height, width}), {0, 0, u.pad[0], u.pad[1]},
                        {x.dim(0), x.dim(1), u.pad[0] + u.sizes[0], u.pad[1] + u.sizes[1]});
    }
};

CATENA_FUNCTIONS(UnpoolingNd, Unpooling1d, Unpooling2d, Unpooling3d, Upsampling2d);

}  // namespace catena::plugins
