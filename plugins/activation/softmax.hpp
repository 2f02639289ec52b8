// Softmax: normalised exponentials along an axis.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/rows.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Softmax {
    static constexpr auto about =
        describe("catena.softmax", "y = e^x / sum of e^x along an axis", in("x"), out("y"),
                 attr("axis", 1, "the axis that sums to 1; negative: from the last"))
            .example("x=(2,3)")
            .example("x=(2,3) axis=0")
            .example("x=(2,3,2) axis=1")
            .example("x=(4) axis=-1");
    static constexpr auto retain_y = ports(0);

    static void infer(const auto& s) {
        s.axis(s.template attr<"axis">(), s.x(0).size());
        s.y(0, s.x(0));
    }
    static void gradient(const auto& g) {
        const std::int64_t axis = g.template attr<"axis">();
        const Var y = g.y(0);
        g.gx(0, y * (g.gy(0) - sum(y * g.gy(0), Ints(&axis, 1), true)));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const T* const x = call.template x<T>(0).data;
        const auto y = call.template y<T>(0);
        const bool add = call.adds(0);
        const Axis axis = axis_of(call, y.shape);
        const std::int64_t step = axis.inner;
        const std::int64_t length = axis.length;
        if (length == 0) return;
        for_each_strip(call, axis,
                       [&](std::int64_t, std::int64_t p, std::int64_t width) CATENA_LAMBDA {
                           if (step == 1) line(x + p, y.data + p, length, add);
                           else strip(x + p, y.data + p, length, step, width, add);
                       });
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto y = call.template y<T>(0);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        const bool add = call.adds(0);
        const Axis axis = axis_of(call, y.shape);
        const std::int64_t step = axis.inner;
        const std::int64_t length = axis.length;
        for_each_strip(
            call, axis, [&](std::int64_t, std::int64_t p, std::int64_t width) CATENA_LAMBDA {
                const T* const v = y.data + p;
                const T* const g = gy.data + p;
                T* const out = gx.data + p;
                if (step == 1) {
                    const T dot = sum_lanes<T>(
                        length, [&](std::int64_t i) CATENA_LAMBDA { return v[i] * g[i]; });
                    CATENA_LOOP
                    for (std::int64_t i = 0; i < length; ++i)
                        out[i] = (add ? out[i] : T(0)) + v[i] * (g[i] - dot);
                    return;
                }
                T dot[64] = {};
                for (std::int64_t i = 0; i < length; ++i)
                    for (std::int64_t j = 0; j < width; ++j)
                        dot[j] += v[i * step + j] * g[i * step + j];
                for (std::int64_t i = 0; i < length; ++i) {
                    CATENA_LOOP
                    for (std::int64_t j = 0; j < width; ++j)
                        out[i * step + j] = (add ? out[i * step + j] : T(0)) +
                                            v[i * step + j] * (g[i * step + j] - dot[j]);
                }
            });
    }

private:
    static Axis axis_of(const auto& call, Shape shape) {
        return {shape, axis_index(call.template attr<"axis">(), shape.size())};
    }
    // Computes the softmax of one contiguous line.
    template <class T>
    CATENA_KERNEL static void line(const T* x, T* y, std::int64_t length, bool add) {
        const T most = max_of(x, length);
        if (add || length < 64) {
            scaled_exp(x, length, most, T(1) / sum_exp(x, length, most), y, add);
            return;
        }
        CATENA_LOOP
        for (std::int64_t i = 0; i < length; ++i) y[i] = math::exp(x[i] - most);
        const T factor =
            T(1) / sum_lanes<T>(length, [&](std::int64_t i) CATENA_LAMBDA { return y[i]; });
        CATENA_LOOP
        for (std::int64_t i = 0; i < length; ++i) y[i] *= factor;
    }
    // Computes the softmax of up to 64 adjacent lines, whose elements are `step` apart.
    template <class T>
    CATENA_KERNEL static void strip(const T* x, T* y, std::int64_t length, std::int64_t step,
                                    std::int64_t width, bool add) {
        T most[64];
        T sum[64];
        max_and_sum_exp(x, length, step, width, most, sum);
        for (std::int64_t j = 0; j < width; ++j) sum[j] = T(1) / sum[j];
        for (std::int64_t i = 0; i < length; ++i) {
            T* const to = y + i * step;
            if (!add) std::fill_n(to, width, T(0));  // a test of add in the loop would be a branch
            CATENA_LOOP
            for (std::int64_t j = 0; j < width; ++j)
                to[j] += math::exp(x[i * step + j] - most[j]) * sum[j];
        }
    }
};

CATENA_FUNCTIONS(Softmax);

}  // namespace catena::plugins
