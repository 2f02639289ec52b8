// Pooling along any number of axes, as that of images along one axis after the other; pyramids.
#pragma once

#include <catena/plugin/windows.hpp>

#include "windows.hpp"

namespace catena::plugins {

constexpr auto pooling_as(const char* name, const char* doc, const Attribute& last) {
    return describe(name, doc, in(Port("x", "(N, C, ...)")), out(Port("y", "(N, C, ...)")),
                    ksize_attr, stride_attr, pad_attr, last);
}

// pool(x as images, ksize, stride, pad), from which windows along axis 2 remain for each axis.
inline Var pooled(const auto& g, const Var& x, const auto& pool) {
    const std::size_t n = static_cast<std::size_t>(x.ndim()) - 2;
    const List ksize = per_axis<"ksize">(g, n), stride = per_axis<"stride">(g, n, ksize),
               pad = per_axis<"pad">(g, n);
    if (n == 2) return pool(x, ksize, stride, pad);
    Var y = x;
    for (std::size_t d = 0; d < n; ++d) {
        List shape = list_of(y.meta().shape());
        const auto axis = shape.begin() + static_cast<std::ptrdiff_t>(d) + 2;
        const std::int64_t before = size_of(Ints(shape).first(d + 2));
        const std::int64_t after = size_of(Ints(shape).subspan(d + 3));
        y = pool(reshape(y, {1, before, *axis, after}), List{ksize[d], 1}, List{stride[d], 1},
                 List{pad[d], 0});
        *axis = y.dim(2);
        y = reshape(y, shape);
    }
    return y;
}

// n: the number of axes; 0 for any.
template <std::size_t n>
struct MaxPoolingAlong {
    static constexpr auto about_as(const char* name, const char* doc) {
        return pooling_as(name, doc, cover_all_attr);
    }
    static Var compose(const auto& g) {
        image_axes(g, n);
        return pooled(g, g.x(0), [&](const Var& x, Ints ksize, Ints stride, Ints pad) {
            return call<"catena.max_pooling_2d">({x}, {set("ksize", ksize), set("stride", stride),
                                                       set("pad", pad), g.same("cover_all")});
        });
    }
};
struct MaxPoolingNd : MaxPoolingAlong<0> {
    static constexpr auto about =
        about_as("catena.max_pooling_nd", "y = max_pooling_2d along any number of axes")
            .example("x=(2,3,7) ksize=3 stride=2 pad=1")
            .example("x=(1,2,3,4,3) ksize=2");
};
struct MaxPooling1d : MaxPoolingAlong<1> {
    static constexpr auto about =
        about_as("catena.max_pooling_1d", "y = max_pooling_2d along one axis")
            .example("x=(2,3,7) ksize=2 cover_all=false");
};
struct MaxPooling3d : MaxPoolingAlong<3> {
    static constexpr auto about =
        about_as("catena.max_pooling_3d", "y = max_pooling_2d along three axes")
            .example("x=(1,2,3,4,3) ksize=[2,3,2] stride=2 pad=[0,1,1] cover_all=false");
};

inline constexpr Attribute count_pad_attr =
    attr("count_pad", true, "whether the padding counts as zeros; else means leave it out");

template <std::size_t n>
struct AveragePoolingAlong {
    static constexpr auto about_as(const char* name, const char* doc) {
        return pooling_as(name, doc, count_pad_attr);
    }
    static Var compose(const auto& g) {
        image_axes(g, n);
        const auto means = [&](const Var& images) {
            return pooled(g, images, [&](const Var& x, Ints ksize, Ints stride, Ints pad) {
                return call<"catena.average_pooling_2d">(
                    {x}, {set("ksize", ksize), set("stride", stride), set("pad", pad)});
            });
        };
        const Var y = means(g.x(0));
        if (g.template attr<"count_pad">()) return y;
        List one = list_of(g.x_meta(0).shape());
        one[0] = one[1] = 1;
        return y / means(full(one, 1, y.dtype()));
    }
};
struct AveragePoolingNd : AveragePoolingAlong<0> {
    static constexpr auto about =
        about_as("catena.average_pooling_nd", "y = average_pooling_2d along any number of axes")
            .example("x=(2,3,7) ksize=3 stride=2 pad=1")
            .example("x=(1,2,3,4,3) ksize=2 pad=1 count_pad=false");
};
struct AveragePooling1d : AveragePoolingAlong<1> {
    static constexpr auto about =
        about_as("catena.average_pooling_1d", "y = average_pooling_2d along one axis")
            .example("x=(2,3,7) ksize=2");
};
struct AveragePooling3d : AveragePoolingAlong<3> {
    static constexpr auto about =
        about_as("catena.average_pooling_3d", "y = average_pooling_2d along three axes")
            .example("x=(1,2,3,4,3) ksize=[2,3,2] stride=2 pad=[0,1,1]");
};

inline constexpr const char* pyramid_poolings[] = {"max", nullptr};

struct SpatialPyramidPooling2d {
    static constexpr auto about =
        describe("catena.spatial_pyramid_pooling_2d",
                 "y = maxima over 1, 4, 16, ... parts of images, as channels",
                 in(Port("x", "(N, C, H, W)")), out(Port("y", "(N, C (1 + 4 + ...), 1, 1)")),
                 // 4^16 parts are more than images have pixels.
                 required<std::int64_t>("pyramid_height", "the number of levels").range(1, 16),
                 required<const char*>("pooling", "how the pixels of a part are combined")
                     .one_of(pyramid_poolings))
            .example("x=(2,3,4,8) pyramid_height=3 pooling=\"max\"");

    static Var compose(const auto& g) {
        g.check_ndim(0, 4);
        const Meta x = g.x_meta(0);
        std::vector<Var> levels;
        for (std::int64_t level = 0; level < g.template attr<"pyramid_height">(); ++level) {
            List ksize, pad;
            for (const std::int64_t size : x.shape().subspan(2)) {
                const std::int64_t parts = std::int64_t{1} << level;
                ksize.push_back((size + parts - 1) / parts);
                pad.push_back((ksize.back() * parts - size) / 2);
            }
            const Var y = call<"catena.max_pooling_2d">(
                {g.x(0)}, {set("ksize", Ints(ksize)), set("pad", Ints(pad))});
            levels.push_back(reshape(y, {x.dim(0), x.dim(1) * y.dim(2) * y.dim(3), 1, 1}));
        }
        return concat(levels, 1);
    }
};

CATENA_FUNCTIONS(MaxPoolingNd, MaxPooling1d, MaxPooling3d, AveragePoolingNd, AveragePooling1d,
                 AveragePooling3d, SpatialPyramidPooling2d);

}  // namespace catena::plugins
