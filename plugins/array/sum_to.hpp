// What broadcasting repeated, summed up again.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/broadcast.hpp>
#include <catena/plugin/reduce.hpp>

#include "broadcast_to.hpp"

namespace catena::plugins {

struct SumTo {
    static constexpr auto about =
        describe("catena.sum_to", "y = x, summed to a shape that broadcasts to x's", in("x"),
                 out("y"), required<Ints>("shape", "the shape of y"))
            .example("x=(2,3) shape=[3]")
            .example("x=(2,3,2) shape=[3,1]")
            .example("x=(2,3) shape=[]");
    using types = Numbers;

    static void infer(const auto& s) {
        const Ints shape = s.template attr<"shape">();
        s.check(BroadcastTo::fits(shape, s.x(0)), "shape",
                "one that broadcasts to " + text_of(s.x(0)), shape);
        s.y(0, shape);
    }
    static void gradient(const auto& g) { g.gx(0, broadcast_to(g.gy(0), g.x_shape(0))); }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        sum_to_shape(call, x.data, x.shape, y.data, y.shape, call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        broadcast_copy(call, gy.data, gy.shape, gx.data, gx.shape, call.adds(0));
    }
};

CATENA_FUNCTIONS(SumTo);

}  // namespace catena::plugins
