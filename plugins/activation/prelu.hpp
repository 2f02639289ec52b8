// Rectified linear unit with learned slopes.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/reduce.hpp>

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
        std::int64_t wide[CATENA_MAX_NDIM];  // W beside x: 1, its extents, 1 ...
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

    // What each element gives to W's gradient.
    template <class T>
    static void plan(const auto& call, catena_plan& plan) {
        if (call.raw().phase == CATENA_PHASE_BACKWARD && call.wants(1))
            plan.scratch_bytes =
                static_cast<std::uint64_t>(call.template x<T>(0).size()) * sizeof(T);
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto w = call.template x<T>(1);
        const auto gy = call.template gy<T>(0);
        const auto gx = call.template gx<T>(0);
        const auto gw = call.template gx<T>(1);
        if (gx) apply(call, x, gy, w, gx, call.adds(0));
        if (!gw) return;
        T* const parts = call.template scratch<T>();
        call.parallel(x.size(), 2, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            CATENA_LOOP
            for (std::int64_t i = begin; i < end; ++i) {
                const T product = gy[i] * x[i];  // in any case: no branch
                parts[i] = math::where(x[i] >= T(0), T(0), product);
            }
        });
        const Reduction other_axes(x.shape, [&](std::size_t d) { return d == 0 || d > w.ndim(); });
        sum_axes(call, other_axes, parts, gw.data, call.adds(1));
    }

private:
    // x as `outer` times a line of `inner` elements for each slope; with one slope, lines are pieces
    // of the whole, the last one shorter.
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
            if (size == 0) outer = 0;  // no walk over rows without elements
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
        const bool flat = at.inner == 1;  // a slope for each element of a row
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
};

CATENA_FUNCTIONS(Prelu);

}  // namespace catena::plugins
