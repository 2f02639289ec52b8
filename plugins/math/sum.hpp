// Sum along axes.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/broadcast.hpp>
#include <catena/plugin/reduce.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Sum {
    static constexpr auto about =
        describe("catena.sum", "y = sum of x along axes", in("x"), out("y"),
                 attr("axis", Ints{}, "the axes, negative ones from the last; empty: all"),
                 attr("keepdims", false, "keep these axes with extent 1"))
            .example("x=(2,3)")
            .example("x=(2,3,4) axis=1")
            .example("x=(2,3,4) axis=[0,-1] keepdims=true")
            .example("x=()");
    using types = Numbers;

    static void infer(const auto& s) {
        const Shape x = s.x(0);
        const Ints axes = s.template attr<"axis">();
        for (std::size_t i = 0; i < axes.size(); ++i) {
            const std::size_t a = s.axis(axes[i], x.size());
            for (std::size_t k = 0; k < i; ++k)
                s.check(s.axis(axes[k], x.size()) != a, "axis", "each axis once", axes,
                        CATENA_E_INVALID);
        }
        const Kept kept(x, axes);
        std::int64_t shape[CATENA_MAX_NDIM];
        std::size_t n = 0;
        for (std::size_t d = 0; d < x.size(); ++d)
            if (s.template attr<"keepdims">() || !kept.summed(d)) shape[n++] = kept.shape()[d];
        s.y(0, Shape(shape, n));
    }
    static void gradient(const auto& g) {
        const Kept kept(g.x_shape(0), g.template attr<"axis">());
        Var gy = g.gy(0);
        if (!g.template attr<"keepdims">()) gy = reshape(gy, kept.shape());
        g.gx(0, broadcast_to(gy, g.x_shape(0)));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const Kept kept(x.shape, call.template attr<"axis">());
        sum_to_shape(call, x.data, x.shape, call.template y<T>(0).data, kept.shape(), call.adds(0));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto gx = call.template gx<T>(0);
        const Kept kept(gx.shape, call.template attr<"axis">());
        broadcast_copy(call, call.template gy<T>(0).data, kept.shape(), gx.data, gx.shape,
                       call.adds(0));
    }

    // The shape of x with extent 1 for the summed axes.
    class Kept {
    public:
        Kept(Shape x, Ints axes) : ndim_(x.size()) {
            std::copy(x.begin(), x.end(), shape_);
            for (const std::int64_t a : axes) summed_ |= 1u << axis_index(a, ndim_);
            if (axes.empty()) summed_ = ~0u;
            for (std::size_t d = 0; d < ndim_; ++d)
                if (summed(d)) shape_[d] = 1;
        }
        bool summed(std::size_t d) const { return (summed_ >> d & 1) != 0; }
        Shape shape() const { return {shape_, ndim_}; }

    private:
        std::int64_t shape_[CATENA_MAX_NDIM];
        std::size_t ndim_;
        std::uint32_t summed_ = 0;
    };
};

CATENA_FUNCTIONS(Sum);

}  // namespace catena::plugins
