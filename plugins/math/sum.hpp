// Sum along axes.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/broadcast.hpp>
#include <catena/plugin/sum_integers.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Sum {
    static constexpr auto about =
        describe("catena.sum",
                 "y = sum of x along axes\n\nSums of integers and bool are int64, as in NumPy.",
                 in("x"), out(Port("y").of("U")),
                 attr("axis", Ints{}, "the axes, negative ones from the last; empty: all"),
                 attr("keepdims", false, "keep these axes with extent 1"))
            .since(2)
            .example("x=(2,3)")
            .example("x=(2,3,4) axis=1")
            .example("x=(2,3,4) axis=[0,-1] keepdims=true")
            .example("x=()");
    using types = Totals;
    static constexpr unsigned widened = 0b11;

    static void infer(const auto& s) {
        s.y(0, infer_kept(s).shape(s.template attr<"keepdims">()), total_dtype(s.dtype(0)));
    }
    static void gradient(const auto& g) {
        const Kept kept(g.x_shape(0), g.template attr<"axis">());
        Var gy = g.gy(0);
        if (!g.template attr<"keepdims">()) gy = reshape(gy, kept.shape());
        g.gx(0, broadcast_to(gy, g.x_shape(0)));
    }

    template <class T, class Y>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        Y* const y = call.template y<Y>(0).data;
        const Kept kept(x.shape, call.template attr<"axis">());
        sum_to_shape(call, x.data, x.shape, y, kept.shape(), call.adds(0));
    }
    template <class T, class Y>
        requires(!std::is_integral_v<T>)
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gx = call.template gx<T>(0);
        const Kept kept(gx.shape, call.template attr<"axis">());
        broadcast_copy(call, call.template gy<Y>(0).data, kept.shape(), gx.data, gx.shape,
                       call.adds(0));
    }
};

CATENA_FUNCTIONS(Sum);

}  // namespace catena::plugins
