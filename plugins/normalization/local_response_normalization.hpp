// Normalisation by the neighbouring channels (Krizhevsky, Sutskever and Hinton, 2012).
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/rows.hpp>

namespace catena::plugins {

using namespace catena::plugin;

// The channel axis, and the number of channels on either side that belong to a channel's window.
struct ChannelWindows {
    explicit ChannelWindows(const auto& call, Shape x)
        : axis(x, 1), reach(call.template attr<"n">() / 2) {
        if (axis.length == 0) axis.outer = 0;  // skips images without channels
    }
    // Calls body(row, sum) for each channel of a strip of `width` elements from `at` on (see
    // for_each_strip()): `row` is the offset of the channel's first element, and sum[k] is the sum
    // of f(element) over the channel and its neighbours.
    template <class T>
    CATENA_KERNEL void for_each_channel(std::int64_t at, std::int64_t width, const auto& f,
                                        const auto& body) const {
        T sum[64];
        for (std::int64_t c = 0; c < axis.length; ++c) {
            std::fill_n(sum, width, T(0));
            const std::int64_t to = std::min(c + reach + 1, axis.length);
            for (std::int64_t j = std::max<std::int64_t>(0, c - reach); j < to; ++j) {
                const std::int64_t row = at + j * axis.inner;
                CATENA_LOOP
                for (std::int64_t k = 0; k < width; ++k) sum[k] += f(row + k);
            }
            body(at + c * axis.inner, sum);
        }
    }

    Axis axis;
    std::int64_t reach;
};

inline constexpr Attribute window_attr =
    attr("n", 5, "number of channels in the window: n / 2 on either side").range(1, 1 << 30);

// Computes unit^-beta for any beta; unit must be positive.
struct AnyPower {
    template <class T>
    CATENA_FN T operator()(T unit, T beta) const {
        return math::exp(-beta * math::log(unit));
    }
};
struct ThreeQuarters {
    template <class T>
    CATENA_FN T operator()(T unit, T) const {
        const T root = T(1) / math::sqrt(unit);
        return root * math::sqrt(root);
    }
};

struct LocalResponseNormalization {
    static constexpr auto about =
        describe(
            "catena.local_response_normalization",
            "y = x (k + alpha s)^-beta, where s is x^2 summed over the neighbouring channels\n\n"
            "The window is clipped at the first and the last channel; alpha is not divided by n. "
            "(Krizhevsky, Sutskever and Hinton, \"ImageNet Classification with Deep "
            "Convolutional Neural Networks\", 2012.)",
            in(Port("x", "(N, C, ...)")), out("y"), window_attr, attr("k", 2.0, "added to the sum"),
            attr("alpha", 1e-4, "scale of the sum"), attr("beta", 0.75, "exponent"))
            .example("x=(2,6,3) alpha=0.1")
            .example("x=(1,4,2,2) n=3 k=1 alpha=0.5 beta=0.5")
            .example("x=(2,3) n=4 alpha=0.1");
    static constexpr auto retain_x = ports(0);

    static void infer(const auto& s) {
        s.check_least_ndim(0, 2);
        s.y(0, s.x(0));
    }
    static void gradient(const auto& g) {
        // Sums over the windows, as means of images with the channels as rows.
        const Shape shape = g.x_shape(0);
        const auto total = [&](const Var& v) {
            const std::int64_t size = size_of(shape), one[] = {1};
            if (size == 0) return v;
            const std::int64_t reach = std::min(g.template attr<"n">() / 2, shape[1] - 1);
            const std::int64_t pad[] = {reach, 0}, ksize[] = {2 * reach + 1, 1};
            const Var images = reshape(v, {shape[0], 1, shape[1], size / (shape[0] * shape[1])});
            const Var means = call<"catena.average_pooling_2d">(
                {images},
                {set("ksize", Ints(ksize)), set("stride", Ints(one)), set("pad", Ints(pad))});
            return reshape(means * static_cast<double>(ksize[0]), shape);
        };
        const double alpha = g.template attr<"alpha">();
        const double beta = g.template attr<"beta">();
        const Var x = g.x(0);
        const Var unit = g.template attr<"k">() + alpha * total(x * x);
        const Var scaled = g.gy(0) * math::pow(unit, -beta);
        if (scaled.is_constant(0)) return g.gx(0, scaled);
        g.gx(0, scaled - 2.0 * alpha * beta * x * total(x * scaled / unit));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        with_power(call, [&](auto power) CATENA_LAMBDA {
            const T* const x = call.template x<T>(0).data;
            T* const y = call.template y<T>(0).data;
            const bool add = call.adds(0);
            const Rule<T> shared(call);
            const ChannelWindows windows(call, call.template x<T>(0).shape);
            const auto strip = [&](std::int64_t, std::int64_t at, std::int64_t n) CATENA_LAMBDA {
                const Rule<T> rule = shared;  // a local copy, which no store can modify
                const auto write = [&](std::int64_t row, const T* sum) CATENA_LAMBDA {
                    CATENA_LOOP
                    for (std::int64_t k = 0; k < n; ++k) {
                        const T unit = rule.k + rule.alpha * sum[k];
                        store(y[row + k], add, x[row + k] * power(unit, rule.beta));
                    }
                };
                for_each_sum(windows, x, at, n, write);
            };
            for_each_strip(call, windows.axis, strip);
        });
    }
    // Requests memory for x gy unit^(-beta - 1): the second sum reads it for all channels.
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase == CATENA_PHASE_BACKWARD)
            plan.scratch_bytes =
                static_cast<std::uint64_t>(call.template x<T>(0).size()) * sizeof(T);
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        with_power(call, [&](auto power) CATENA_LAMBDA {
            const T* const x = call.template x<T>(0).data;
            const T* const gy = call.template gy<T>(0).data;
            T* const gx = call.template gx<T>(0).data;
            T* const inner = call.template scratch<T>();
            const bool add = call.adds(0);
            const Rule<T> shared(call);
            const ChannelWindows windows(call, call.template x<T>(0).shape);
            const auto strip = [&](std::int64_t, std::int64_t at, std::int64_t n) CATENA_LAMBDA {
                const Rule<T> rule = shared;
                const T slope = T(2) * rule.alpha * rule.beta;
                const auto write = [&](std::int64_t row, const T* sum) CATENA_LAMBDA {
                    CATENA_LOOP
                    for (std::int64_t k = 0; k < n; ++k) {
                        const T unit = rule.k + rule.alpha * sum[k];
                        const T scaled = gy[row + k] * power(unit, rule.beta);
                        store(gx[row + k], add, scaled);
                        inner[row + k] = x[row + k] * scaled / unit;
                    }
                };
                for_each_sum(windows, x, at, n, write);
                const auto term = [&](std::int64_t i) CATENA_LAMBDA { return inner[i]; };
                const auto subtract = [&](std::int64_t row, const T* sum) CATENA_LAMBDA {
                    CATENA_LOOP
                    for (std::int64_t k = 0; k < n; ++k) gx[row + k] -= slope * x[row + k] * sum[k];
                };
                windows.for_each_channel<T>(at, n, term, subtract);
            };
            for_each_strip(call, windows.axis, strip);
        });
    }

private:
    template <class T>
    struct Rule {
        explicit Rule(const auto& call)
            : k(static_cast<T>(call.template attr<"k">())),
              alpha(static_cast<T>(call.template attr<"alpha">())),
              beta(static_cast<T>(call.template attr<"beta">())) {}

        T k;
        T alpha;
        T beta;
    };
    CATENA_KERNEL static void with_power(const auto& call, const auto& body) {
        if (call.template attr<"beta">() == 0.75) body(ThreeQuarters{});
        else body(AnyPower{});
    }

    // Calls body(row, sum) for each channel: sum[k] is the sum of squares around element row + k.
    template <class T>
    CATENA_KERNEL static void for_each_sum(const ChannelWindows& windows, const T* x,
                                           std::int64_t at, std::int64_t n, const auto& body) {
        const auto square = [&](std::int64_t i) CATENA_LAMBDA { return x[i] * x[i]; };
        windows.for_each_channel<T>(at, n, square, body);
    }
};

CATENA_FUNCTIONS(LocalResponseNormalization);

}  // namespace catena::plugins
