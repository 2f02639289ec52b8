// Images in another size.
#pragma once

#include <catena/plugin.hpp>

namespace catena::plugins {

using namespace catena::plugin;

inline constexpr const char* resize_modes[] = {"bilinear", "nearest", nullptr};

struct ResizeImages {
    static constexpr auto about =
        describe(
            "catena.resize_images", "y = images in another size", in(Port("x", "(N, C, H, W)")),
            out(Port("y", "(N, C, h, w)")),
            required<Ints>("output_shape", "the new height and width").range(1, 1 << 30),
            attr("mode", "bilinear", "how pixels between those of x are found")
                .one_of(resize_modes),
            attr("align_corners", true,
                 "bilinear: whether the first and the last pixels of a row stay at the corners"))
            .example("x=(1,2,3,4) output_shape=[5,2]")
            .example("x=(1,2,3,4) output_shape=[2,7] align_corners=false")
            .example("x=(1,2,3,4) output_shape=[4,2] mode=\"nearest\"");

    static Var compose(const auto& g) {
        g.check_ndim(0, 4);
        const Ints sizes = g.template attr<"output_shape">();
        g.check(sizes.size() == 2, "output_shape", "(height, width)", sizes, CATENA_E_INVALID);
        const Meta x = g.x_meta(0);
        g.check(x.dtype.code == CATENA_CODE_FLOAT || x.dtype.code == CATENA_CODE_BFLOAT, "x",
                "floating-point numbers", x.dtype, CATENA_E_DTYPE);
        g.check(x.dim(2) > 0 && x.dim(3) > 0, "x.shape", "images with pixels", x.shape());
        return resized(g, resized(g, g.x(0), 2, sizes[0]), 3, sizes[1]);
    }

private:
    static Var resized(const auto& g, const Var& x, std::int64_t axis, std::int64_t n) {
        const std::int64_t size = x.dim(axis);
        const auto last = static_cast<double>(size - 1);
        const double scale = static_cast<double>(size) / static_cast<double>(n);
        const auto taken = [&](const Var& places) {
            return take(x, cast(math::min(places, last), dtype_of<std::int64_t>()), axis);
        };
        Var place = arange(n, dtype_of<double>());
        if (g.template attr<"mode">() == "nearest")
            return taken(call<"catena.floor">({place * scale}));
        if (g.template attr<"align_corners">())
            place = call<"catena.linspace">({}, {set("start", 0.0), set("stop", last), set("n", n),
                                                 set("dtype", dtype_of<double>())});
        else place = math::max((place + 0.5) * scale - 0.5, 0);
        const Var first = call<"catena.floor">({place});
        List shape(static_cast<std::size_t>(4 - axis), 1);
        shape[0] = n;
        const Var weight = reshape(cast(place - first, x.dtype()), shape);
        return taken(first) * (1 - weight) + taken(first + 1) * weight;
    }
};

CATENA_FUNCTIONS(ResizeImages);

}  // namespace catena::plugins
