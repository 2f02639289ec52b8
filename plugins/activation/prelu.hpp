// Rectified linear unit with learned slopes.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/rows.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct Prelu {
    static constexpr auto about =
        describe(
            "catena.prelu",
            "y = x where x >= 0, else W * x; the gradient is 1 at 0 and NaN at NaN\n\n"
            "W has a slope for each element of the axes of x that follow the first; a 0-d W is "
            "one slope for all. (He et al., \"Delving Deep into Rectifiers\", 2015.)",
            in(Port("x", "(N, ...)"), Port("W", "slopes; shaped as x from axis 1 on")), out("y"))
            .example("x=(2,3)[0.5,1.5] W=()")
            .example("x=(2,3)[-1.5,-0.5] W=(3)")
            .example("x=(2,3,4)[-1.5,-0.5] W=(3)")
            .example("x=(2,3,2)[-1.5,-0.5] W=(3,2)");
    static constexpr auto retain_x = ports(0, 1);

    static void infer(const auto& s) {
        const Shape x = s.x(0);
        const Shape w = s.x(1);
        const bool fits =
            w.empty() || (w.size() < x.size() && std::ranges::equal(w, x.subspan(1, w.size())));
        if (!fits) [[unlikely]]
            s.check(false, "W.shape", "the extents of x " + text_of(x) + " from axis 1 on, or ()",
                    w);
        s.y(0, x);
    }
    static void gradient(const auto& g) {
        const Shape w = g.x_shape(1);
        const Shape x = g.x_shape(0);
        std::int64_t wide[CATENA_MAX_NDIM];  // W's shape for broadcasting: (1, W's extents, 1, ...)
        std::fill_n(wide, x.size(), 1);
        if (!w.empty()) std::copy(w.begin(), w.end(), wide + 1);
        const Shape beside(wide, x.size());
        const Var gy = g.gy(0);
        if (g.wants(0))
            g.gx(0, math::where(g.x(0) >= 0, gy,
                                math::unless_nan(g.x(0), gy * reshape(g.x(1), beside))));
        if (g.wants(1))
            g.gx(1, reshape(sum_to(math::where(g.x(0) >= 0, 0, gy * g.x(0)), beside), w));
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        apply(call, x, x, call.template x<T>(1), call.template y<T>(0), call.adds(0));
    }

    // Scratch memory holds partial sums of W's gradient, for each piece and slope.
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase != CATENA_PHASE_BACKWARD || !call.wants(1)) return;
        const Lines at(call.template x<T>(0).shape, call.template x<T>(1).shape);
        plan.scratch_bytes = static_cast<std::uint64_t>(at.pieces() * at.slopes) * sizeof(double);
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(1);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        const auto gw = call.template gx<T>(1);
        if (gx) apply(call, x, gy, w, gx, call.adds(0));
        if (gw) sum_negative(call, x, gy, gw, call.adds(1));
    }

private:
    // Views x as (outer, slopes, inner): a line is `inner` contiguous elements with the same slope.
    // With a 0-d W, x is divided into lines of 4096 elements; the last one may be shorter.
    struct Lines {
        Lines(Shape x, Shape w) {
            size = size_of(x);
            slopes = size_of(w);
            if (w.empty()) {
                inner = 4096;
                outer = (size + inner - 1) / inner;
                return;
            }
            outer = x[0];
            inner = size_of(x.subspan(1 + w.size()));
            if (size == 0) outer = 0;  // skip rows without elements
        }
        std::int64_t pieces() const {
            return std::clamp<std::int64_t>(std::min(outer, size / serial_work), 1, 64);
        }
        std::int64_t size = 1;
        std::int64_t slopes = 1;
        std::int64_t outer = 1;
        std::int64_t inner = 1;
    };

    // y = v where x >= 0, W * v where x < 0, NaN where x is NaN.
    template <class T>
    CATENA_KERNEL static void apply(const auto& call, Tensor<const T> x, Tensor<const T> v,
                                    Tensor<const T> w, Tensor<T> y, bool add) {
        const Lines at(x.shape, w.shape);
        const bool flat = at.inner == 1;  // each element of a row has its own slope
        const std::int64_t length = flat ? at.slopes : at.inner;
        auto body = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t line = begin; line < end; ++line) {
                const std::int64_t p = line * length;
                const std::int64_t n = std::min(length, at.size - p);
                const T* const from = x.data + p;
                const T* const value = v.data + p;
                const T* const slope = w.data;
                const T one = flat ? T(0) : w[line % at.slopes];
                T* const to = y.data + p;
                CATENA_LOOP
                for (std::int64_t i = 0; i < n; ++i)
                    to[i] =
                        (add ? to[i] : T(0)) +
                        math::where(from[i] >= T(0), value[i],
                                    math::unless_nan(from[i], value[i] * (flat ? slope[i] : one)));
            }
        };
        call.parallel(flat ? at.outer : at.outer * at.slopes, length, body);
    }

    // gw = sum of gy * x where x < 0. The pieces do not depend on the number of threads.
    template <class T>
    CATENA_KERNEL static void sum_negative(const auto& call, Tensor<const T> x, Tensor<const T> gy,
                                           Tensor<T> gw, bool add) {
        const Lines at(x.shape, gw.shape);
        const std::int64_t slopes = at.slopes;
        const std::int64_t pieces = at.pieces();
        double* const part = call.template scratch<double>();
        const T* const from = x.data;
        const T* const g = gy.data;
        const auto negative = [=](std::int64_t i) CATENA_LAMBDA {
            const T product = g[i] * from[i];  // computed unconditionally: no branch
            return math::where(from[i] >= T(0), T(0), product);
        };
        auto body = [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t piece = begin; piece < end; ++piece) {
                double* const sum = part + piece * slopes;
                std::fill_n(sum, slopes, 0.0);
                const std::int64_t last = at.outer * (piece + 1) / pieces;
                for (std::int64_t row = at.outer * piece / pieces; row < last; ++row) {
                    const std::int64_t base = row * slopes * at.inner;
                    if (at.inner == 1) {
                        CATENA_LOOP
                        for (std::int64_t k = 0; k < slopes; ++k)
                            sum[k] += static_cast<double>(negative(base + k));
                        continue;
                    }
                    for (std::int64_t k = 0; k < slopes; ++k) {
                        const std::int64_t p = base + k * at.inner;
                        sum[k] += static_cast<double>(sum_lanes<T>(
                            std::min(at.inner, at.size - p),
                            [&](std::int64_t i) CATENA_LAMBDA { return negative(p + i); }));
                    }
                }
            }
        };
        call.parallel(pieces, at.size / pieces, body);
        for (std::int64_t k = 0; k < slopes; ++k) {
            double total = 0;
            for (std::int64_t piece = 0; piece < pieces; ++piece) total += part[piece * slopes + k];
            store(gw[k], add, static_cast<T>(total));
        }
    }
};

CATENA_FUNCTIONS(Prelu);

}  // namespace catena::plugins
