// Spatial transformers: points of affine transformations, and the pixels of images at points.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/precision.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct SpatialTransformerGrid {
    static constexpr auto about =
        describe(
            "catena.spatial_transformer_grid",
            "grid = the points of images after affine transformations\n\n"
            "Coordinates are from -1 to 1 within an image.",
            in(Port("theta", "(N, 2, 3), the transformations of (x, y, 1)")),
            out(Port("grid", "(N, 2, h, w): x and y of each point")),
            required<Ints>("output_shape", "the height and width of the result").range(0, 1 << 30))
            .example("theta=(2,2,3) output_shape=[3,2]");

    static Var compose(const auto& g) {
        const Meta theta = g.x_meta(0);
        g.check_ndim(0, 3);
        g.check_shape(0, {theta.dim(0), 2, 3});
        const Ints size = g.template attr<"output_shape">();
        g.check(size.size() == 2, "output_shape", "(height, width)", size, CATENA_E_INVALID);
        const auto line = [&](std::int64_t n, const IntList& shape) {
            const Var places = call<"catena.linspace">(
                {}, {set("start", -1.0), set("stop", 1.0), set("n", n), set("dtype", theta.dtype)});
            return broadcast_to(reshape(places, shape), size);
        };
        const Var points = stack(
            {line(size[1], {size[1]}), line(size[0], {size[0], 1}), full(size, 1, theta.dtype)}, 0);
        const Var grid = matmul(g.x(0), reshape(points, {3, times(size[0], size[1])}));
        return reshape(grid, {theta.dim(0), 2, size[0], size[1]});
    }
};

struct SpatialTransformerSampler {
    static constexpr auto about =
        describe("catena.spatial_transformer_sampler",
                 "y = the pixels of images at points, with bilinear interpolation\n\n"
                 "Outside of the images, pixels are 0.",
                 in(Port("x", "(N, C, H, W)"),
                    Port("grid", "(N, 2, h, w): x and y, from -1 to 1 within an image")),
                 out(Port("y", "(N, C, h, w)")))
            .example("x=(2,3,4,5) grid=(2,2,2,3)[0.1,0.3]")
            .example("x=(1,2,3,3) grid=(1,2,3,1)[-0.8,-0.6]");

    static Var compose(const auto& g) {
        const Meta x = g.x_meta(0), grid = g.x_meta(1);
        g.check_ndim(0, 4);
        g.check_ndim(1, 4);
        const std::int64_t n = x.dim(0), c = x.dim(1), h = x.dim(2), w = x.dim(3);
        g.check_shape(1, {n, 2, grid.dim(2), grid.dim(3)});
        const std::int64_t points = times(grid.dim(2), grid.dim(3));
        // The pixels of all images, with a border of zeros, as rows of C numbers. Places in large
        // images need more digits than half precision has.
        const Var rows =
            reshape(transpose(pad(widened(g.x(0)), {0, 0, 0, 0, 1, 1, 1, 1}), {0, 2, 3, 1}),
                    {times(n, times(h + 2, w + 2)), c});
        // The two pixels around each point along an axis, and their weights.
        struct Side {
            Var index[2], weight[2];
        };
        const auto side = [&](std::int64_t axis, std::int64_t size) {
            const Var at = reshape(slice(widened(g.x(1)), 1, axis, axis + 1), {n, points});
            const Var place = call<"catena.clip">(
                {(at + 1) * (static_cast<double>(size - 1) / 2) + 1},
                {set("x_min", 0.0), set("x_max", static_cast<double>(size + 1))});
            const Var first = math::min(call<"catena.floor">({place}), static_cast<double>(size));
            const Var index = cast(math::where(first == first, first, 0), dtype_of<std::int64_t>());
            return Side{{index, index + 1}, {first + 1 - place, place - first}};
        };
        const Side u = side(0, w), v = side(1, h);
        const Var image =
            reshape(arange(n, dtype_of<std::int64_t>(), 0, (h + 2) * (w + 2)), {n, 1});
        const auto pitch = static_cast<double>(w + 2);
        const auto corner = [&](std::size_t i, std::size_t j) {
            const Var pixels = take(rows, image + v.index[i] * pitch + u.index[j]);
            return pixels * reshape(u.weight[j] * v.weight[i], {n, points, 1});
        };
        const Var y = corner(0, 0) + corner(0, 1) + corner(1, 0) + corner(1, 1);
        return transpose(reshape(in_dtype(y, x.dtype), {n, grid.dim(2), grid.dim(3), c}),
                         {0, 3, 1, 2});
    }
};

CATENA_FUNCTIONS(SpatialTransformerGrid, SpatialTransformerSampler);

}  // namespace catena::plugins
