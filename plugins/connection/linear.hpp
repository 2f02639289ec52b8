// Fully connected layer.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/blas.hpp>
#include <catena/plugin/broadcast.hpp>
#include <catena/plugin/reduce.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Linear {
    static constexpr auto about =
        describe("catena.linear",
                 "y = x W^T + b\n\nThe first n_batch_axes axes of x are those of y; the others are "
                 "merged.",
                 in(Port("x", "(N, ...)"), Port("W", "(out, in)"), Port("b", "(out,)").optional()),
                 out(Port("y", "(N, out)")),
                 attr("n_batch_axes", 1, "the number of axes before those of one input")
                     .range(1, CATENA_MAX_NDIM - 1))
            .since(2)
            .example("x=(2,3) W=(4,3) b=(4)")
            .example("x=(2,3) W=(4,3)")
            .example("x=(2,3,2) W=(2,6) b=(2)")
            .example("x=(2,3,2) W=(4,2) b=(4) n_batch_axes=2")
            .example("x=(3) W=(2,1)");
    static constexpr auto retain_x = ports(0, 1);

    static void infer(const auto& s) {
        const auto n = static_cast<std::size_t>(s.template attr<"n_batch_axes">());
        s.check_least_ndim(0, n);
        s.check_ndim(1, 2);
        const Shape x = s.x(0);
        const std::int64_t outputs = s.x(1)[0];
        if (size_of(x.subspan(n)) != s.x(1)[1]) [[unlikely]]  // building the text allocates
            s.check(false, ("x.shape[" + std::to_string(n) + ":]").c_str(),
                    std::to_string(s.x(1)[1]) + " elements, as W.shape[1] says", x.subspan(n));
        s.check_shape(2, {outputs});
        if (n == 1) return s.y(0, {x[0], outputs});
        std::int64_t y[CATENA_MAX_NDIM];
        std::copy_n(x.begin(), n, y);
        y[n] = outputs;
        s.y(0, Shape(y, n + 1));
    }
    static void gradient(const auto& g) {
        const auto n = static_cast<std::size_t>(g.template attr<"n_batch_axes">());
        const Shape x = g.x_shape(0), w = g.x_shape(1);
        const std::int64_t rows = size_of(x.first(n));
        const Var gy = n == 1 ? g.gy(0) : reshape(g.gy(0), {rows, w[0]});
        if (g.wants(0)) g.gx(0, reshape(matmul(gy, g.x(1)), x));
        if (g.wants(1))
            g.gx(1, matmul(gy, x.size() == 2 && n == 1 ? g.x(0) : reshape(g.x(0), {rows, w[1]}),
                           true, false));
        if (g.wants(2)) g.gx(2, gy);  // gx() sums it to b's shape
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto w = call.template x<T>(1);
        const auto b = call.template x<T>(2);
        const auto y = call.template y<T>(0);
        // The bias first, then the product is added.
        if (b) broadcast_copy(call, b.data, b.shape, y.data, y.shape, call.adds(0));
        multiply<T>(call, {call.template x<T>(0).data, y.count(0, y.ndim() - 1), w.dim(1)},
                    {w.data, w.dim(0), w.dim(1), true}, y.data, b || call.adds(0));
    }

    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(1);
        const auto gy = call.template gy<T>(0);
        const std::int64_t rows = gy.count(0, gy.ndim() - 1);
        const std::int64_t outputs = w.dim(0);
        const std::int64_t inputs = w.dim(1);
        if (const auto gx = call.template gx<T>(0))
            multiply<T>(call, {gy.data, rows, outputs}, {w.data, outputs, inputs}, gx.data,
                        call.adds(0));
        if (const auto gw = call.template gx<T>(1))
            multiply<T>(call, {gy.data, rows, outputs, true}, {x.data, rows, inputs}, gw.data,
                        call.adds(1));
        if (const auto gb = call.template gx<T>(2))
            sum_to_shape(call, gy.data, gy.shape, gb.data, gb.shape, call.adds(2));
    }
};

CATENA_FUNCTIONS(Linear);

}  // namespace catena::plugins
