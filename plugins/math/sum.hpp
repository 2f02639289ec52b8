// Sum along axes.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/broadcast.hpp>
#include <catena/plugin/reduce.hpp>

#include <atomic>

namespace catena::plugins {

using namespace catena::plugin;

// Sums integers or bool of fewer than 64 bits; other sums are sum_to_shape().
template <class T>
CATENA_KERNEL void sum_integers(const auto& call, Tensor<const T> x, const Kept& shape,
                                std::int64_t* y) {
    constexpr std::int64_t strip = 256;  // kept elements that are summed side by side
    const Reduction r(x.shape, [&](std::size_t d) { return shape.reduced(d); });
    if (r.n_kept() == 0) return;
    const std::int64_t row = r.inner_reduced() ? 1 : r.inner();
    const std::int64_t run = r.inner_reduced() ? r.inner() : 1;
    const std::int64_t per_row = (row + strip - 1) / strip;
    if (r.n_kept() == 1 && run == r.n_reduced()) {  // pieces of one sum
        std::atomic<std::int64_t> total = 0;
        auto piece = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            total += static_cast<std::int64_t>(sum_of(x.data + begin, end - begin));
        };
        call.parallel(run, 1, piece);
        *y = total;
        return;
    }
    auto body = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
        for (std::int64_t s = begin; s < end; ++s) {
            const std::int64_t first = s / per_row * row + s % per_row * strip;
            const std::int64_t width = std::min(strip, row - s % per_row * strip);
            const T* const base = x.data + r.offset(first, false);
            std::int64_t sums[strip] = {};
            for (std::int64_t i = 0; i < r.n_reduced(); i += run) {
                const T* const from = base + r.offset(i, true);
                if (r.inner_reduced()) sums[0] += static_cast<std::int64_t>(sum_of(from, run));
                else
                    for (std::int64_t k = 0; k < width; ++k) sums[k] += from[k];
            }
            std::copy_n(sums, width, y + first);
        }
    };
    call.parallel(r.n_kept() / row * per_row,
                  std::max<std::int64_t>(1, r.n_reduced() * std::min(row, strip)), body);
}

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
        if constexpr (!std::is_same_v<T, Y>) sum_integers(call, x, kept, y);
        else sum_to_shape(call, x.data, x.shape, y, kept.shape(), call.adds(0));
    }
    template <class T, class Y>
    requires(!std::is_integral_v<T>) CATENA_KERNEL static void backward(const auto& call) {
        const auto gx = call.template gx<T>(0);
        const Kept kept(gx.shape, call.template attr<"axis">());
        broadcast_copy(call, call.template gy<Y>(0).data, kept.shape(), gx.data, gx.shape,
                       call.adds(0));
    }
};

CATENA_FUNCTIONS(Sum);

}  // namespace catena::plugins
