// Broadcasting to a larger shape, and its adjoint, the sum over broadcast axes.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/broadcast.hpp>
#include <catena/plugin/sum_integers.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct BroadcastTo {
    static constexpr auto about =
        describe("catena.broadcast_to", "y = x, broadcast to a shape as in NumPy", in("x"),
                 out("y"), required<Ints>("shape", "the shape of y"))
            .example("x=(3) shape=[2,3]")
            .example("x=(2,1) shape=[3,2,2]")
            .example("x=() shape=[2]");
    using types = Elements;

    static void infer(const auto& s) {
        const Ints shape = s.template attr<"shape">();
        for (const std::int64_t extent : shape)
            if (extent < 0) [[unlikely]]
                s.check(false, "shape", "no negative extent", shape, CATENA_E_INVALID);
        s.check(fits(s.x(0), shape), "x.shape", "broadcastable to " + text_of(shape), s.x(0));
        s.y(0, shape);
    }
    // Whether an array of shape `from` broadcasts to the shape `to`.
    static bool fits(Shape from, Shape to) {
        if (from.size() > to.size()) return false;
        const std::size_t more = to.size() - from.size();
        for (std::size_t d = 0; d < from.size(); ++d)
            if (from[d] != 1 && from[d] != to[more + d]) return false;
        return true;
    }
    static void gradient(const auto& g) { g.gx(0, g.gy(0)); }  // gx() sums it to x's shape

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<T>(0);
        broadcast_copy(call, x.data, x.shape, y.data, y.shape, call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        sum_to_shape(call, gy.data, gy.shape, gx.data, gx.shape, call.adds(0));
    }
};

struct SumTo {
    static constexpr auto about =
        describe("catena.sum_to",
                 "y = x, summed to a shape that broadcasts to x's\n\n"
                 "Sums of integers and bool are int64, as in NumPy.",
                 in("x"), out(Port("y").of("U")), required<Ints>("shape", "the shape of y"))
            .since(2)
            .example("x=(2,3) shape=[3]")
            .example("x=(2,3,2) shape=[3,1]")
            .example("x=(2,3) shape=[]");
    using types = Totals;
    static constexpr unsigned widened = 0b11;

    static void infer(const auto& s) {
        const Ints shape = s.template attr<"shape">();
        s.check(BroadcastTo::fits(shape, s.x(0)), "shape",
                "one that broadcasts to " + text_of(s.x(0)), shape);
        s.y(0, shape, total_dtype(s.dtype(0)));
    }
    static void gradient(const auto& g) { g.gx(0, broadcast_to(g.gy(0), g.x_shape(0))); }

    template <class T, class Y>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template y<Y>(0);
        sum_to_shape(call, x.data, x.shape, y.data, y.shape, call.adds(0));
    }
    template <class T, class Y>
        requires(!std::is_integral_v<T>)
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gy = call.template gy<Y>(0);
        const auto gx = call.template gx<T>(0);
        broadcast_copy(call, gy.data, gy.shape, gx.data, gx.shape, call.adds(0));
    }
};

CATENA_FUNCTIONS(BroadcastTo, SumTo);

}  // namespace catena::plugins
