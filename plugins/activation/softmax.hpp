// Softmax: normalised exponentials along an axis, and their logarithms.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/rows.hpp>

namespace catena::plugins {

using namespace catena::plugin;

constexpr auto softmax_like(const char* name, const char* doc) {
    return describe(name, doc, in("x"), out("y"),
                    attr("axis", 1, "the axis; negative: from the last"))
        .example("x=(2,3)")
        .example("x=(2,3) axis=0")
        .example("x=(2,3,2) axis=1")
        .example("x=(4) axis=-1");
}

// The kernels of softmax and, with `log`, of log_softmax: compiled once for both.
template <class T, Isa instruction_set>
struct SoftmaxKernels {
    static constexpr Isa isa = instruction_set;
    catena_ctx* context() const { return ctx; }

    catena_ctx* ctx;
    Axis axis;
    bool add;
    bool log;

    // Out-of-line kernels for Target<isa>::call().
    struct Forward {
        CATENA_KERNEL static void run(const SoftmaxKernels* k, const T* x, T* y) {
            k->forward(x, y);
        }
    };
    struct Backward {
        CATENA_KERNEL static void run(const SoftmaxKernels* k, const T* y, const T* gy, T* gx) {
            k->backward(y, gy, gx);
        }
    };

private:
    CATENA_KERNEL void forward(const T* x, T* y) const {
        if (axis.length == 0) return;
        for_each_strip(*this, axis,
                       [&](std::int64_t, std::int64_t p, std::int64_t width) CATENA_LAMBDA {
                           if (axis.inner == 1) line(x + p, y + p);
                           else strip(x + p, y + p, width);
                       });
    }
    // One contiguous line.
    CATENA_KERNEL void line(const T* x, T* y) const {
        const std::int64_t length = axis.length;
        const T most = max_of(x, length);
        if (log) {
            const T lost = math::log(sum_exp(x, length, most));
            CATENA_LOOP
            for (std::int64_t i = 0; i < length; ++i)
                y[i] = (add ? y[i] : T(0)) + ((x[i] - most) - lost);
            return;
        }
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
    // Up to 64 adjacent lines; the elements of a line are axis.inner apart.
    CATENA_KERNEL void strip(const T* x, T* y, std::int64_t width) const {
        const std::int64_t step = axis.inner;
        T most[64];
        T sum[64];
        max_and_sum_exp(x, axis.length, step, width, most, sum);
        for (std::int64_t j = 0; j < width; ++j) sum[j] = log ? math::log(sum[j]) : T(1) / sum[j];
        for (std::int64_t i = 0; i < axis.length; ++i) {
            T* const to = y + i * step;
            const T* const from = x + i * step;
            if (!add) std::fill_n(to, width, T(0));  // a test of add in the loop would be a branch
            if (log) {
                CATENA_LOOP
                for (std::int64_t j = 0; j < width; ++j) to[j] += (from[j] - most[j]) - sum[j];
            } else {
                CATENA_LOOP
                for (std::int64_t j = 0; j < width; ++j)
                    to[j] += math::exp(from[j] - most[j]) * sum[j];
            }
        }
    }
    CATENA_KERNEL void backward(const T* y, const T* gy, T* gx) const {
        const std::int64_t step = axis.inner;
        const std::int64_t length = axis.length;
        for_each_strip(
            *this, axis, [&](std::int64_t, std::int64_t p, std::int64_t width) CATENA_LAMBDA {
                const T* const v = y + p;
                const T* const g = gy + p;
                T* const out = gx + p;
                T dot[64] = {};
                if (step == 1) {
                    dot[0] = sum_lanes<T>(length, [&](std::int64_t i) CATENA_LAMBDA {
                        return (log ? T(1) : v[i]) * g[i];
                    });
                    row(v, g, out, length, [&](std::int64_t) CATENA_LAMBDA { return dot[0]; });
                    return;
                }
                for (std::int64_t i = 0; i < length; ++i)
                    for (std::int64_t j = 0; j < width; ++j)
                        dot[j] += (log ? T(1) : v[i * step + j]) * g[i * step + j];
                for (std::int64_t i = 0; i < length; ++i)
                    row(v + i * step, g + i * step, out + i * step, width,
                        [&](std::int64_t j) CATENA_LAMBDA { return dot[j]; });
            });
    }
    // gx of n contiguous elements.
    CATENA_KERNEL void row(const T* v, const T* g, T* out, std::int64_t n, const auto& dot) const {
        if (log) {
            CATENA_LOOP
            for (std::int64_t i = 0; i < n; ++i)
                out[i] = (add ? out[i] : T(0)) + (g[i] - math::exp(v[i]) * dot(i));
        } else {
            CATENA_LOOP
            for (std::int64_t i = 0; i < n; ++i)
                out[i] = (add ? out[i] : T(0)) + v[i] * (g[i] - dot(i));
        }
    }
};

template <bool log>
struct SoftmaxLike {
    static constexpr auto retain_y = ports(0);
    static constexpr bool logarithm = log;

    static void infer(const auto& s) {
        s.axis(s.template attr<"axis">(), s.x(0).size());
        s.y(0, s.x(0));
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto y = call.template y<T>(0);
        const auto kernels = kernels_of<T>(call, y.shape);
        using K = std::remove_const_t<decltype(kernels)>;
        Target<K::isa>::template call<typename K::Forward, const K*, const T*, T*>(
            &kernels, call.template x<T>(0).data, y.data);
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto y = call.template y<T>(0);
        const auto kernels = kernels_of<T>(call, y.shape);
        using K = std::remove_const_t<decltype(kernels)>;
        Target<K::isa>::template call<typename K::Backward, const K*, const T*, const T*, T*>(
            &kernels, y.data, call.template gy<T>(0).data, call.template gx<T>(0).data);
    }

private:
    template <class T>
    static auto kernels_of(const auto& call, Shape shape) {
        constexpr Isa isa = std::remove_reference_t<decltype(call)>::isa;
        return SoftmaxKernels<T, isa>{
            call.context(),
            {shape, axis_index(call.template attr<"axis">(), shape.size())},
            call.adds(0),
            log};
    }
};

struct Softmax : SoftmaxLike<false> {
    static constexpr auto about =
        softmax_like("catena.softmax", "y = e^x / sum of e^x along an axis, which then sums to 1");

    static void gradient(const auto& g) {
        const std::int64_t axis = g.template attr<"axis">();
        const Var y = g.y(0);
        g.gx(0, y * (g.gy(0) - sum(y * g.gy(0), Ints(&axis, 1), true)));
    }
};

struct LogSoftmax : SoftmaxLike<true> {
    static constexpr auto about =
        softmax_like("catena.log_softmax", "y = x - log(sum of e^x along an axis)");

    static void gradient(const auto& g) {
        const std::int64_t axis = g.template attr<"axis">();
        g.gx(0, g.gy(0) - math::exp(g.y(0)) * sum(g.gy(0), Ints(&axis, 1), true));
    }
};

CATENA_FUNCTIONS(Softmax, LogSoftmax);

}  // namespace catena::plugins
