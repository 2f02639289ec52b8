// Functions without inputs, and with a first input that may be missing.
#pragma once

#include <catena/plugin.hpp>

namespace few_inputs {

using namespace catena::plugin;

struct Ramp {
    static constexpr auto about =
        describe("org.example.ramp", "y = 0, step, 2 step, ...", in(), out("y"),
                 required<std::int64_t>("n", "how many"), attr("step", 1.0, "their distance"),
                 attr("dtype", dtype_of<float>(), "theirs"))
            .not_differentiable()
            .example("n=5")
            .example("n=100000 step=0.25 dtype=\"float64\"");

    static void infer(const auto& s) {
        const auto n = s.template attr<"n">();
        s.check(n >= 0, "n", "0 or more", n, CATENA_E_INVALID);
        s.y(0, {n}, s.template attr<"dtype">());
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto y = call.template y<T>(0);
        const auto step = static_cast<T>(call.template attr<"step">());
        const bool add = call.adds(0);
        call.parallel(y.size(), 1, [=](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t i = begin; i < end; ++i) store(y[i], add, step * static_cast<T>(i));
        });
    }
};

struct Scaled {
    static constexpr auto about =
        describe("org.example.scaled", "y = a b, or b where a is missing",
                 in(Port("a", "the shape of b").optional(), "b"), out("y"))
            .example("b=(2,3)")
            .example("a=(2,3) b=(2,3)");
    static constexpr auto retain_x = ports(0, 1);

    static void infer(const auto& s) {
        if (s.has(0)) s.check(std::ranges::equal(s.x(0), s.x(1)), "a.shape", s.x(1), s.x(0));
        s.y(0, s.x(1), s.dtype(1));
    }
    static void gradient(const auto& g) {
        if (g.wants(0)) g.gx(0, g.gy(0) * g.x(1));
        if (g.wants(1)) g.gx(1, g.has(0) ? g.gy(0) * g.x(0) : g.gy(0));
    }
    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto a = call.template x<T>(0);
        const auto b = call.template x<T>(1);
        const auto y = call.template y<T>(0);
        for (std::int64_t i = 0; i < y.size(); ++i)
            store(y[i], call.adds(0), a ? a[i] * b[i] : b[i]);
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto a = call.template x<T>(0);
        const auto b = call.template x<T>(1);
        const auto gy = call.template gy<T>(0);
        const auto ga = call.template gx<T>(0);
        const auto gb = call.template gx<T>(1);
        for (std::int64_t i = 0; i < b.size(); ++i) {
            const T g = gy ? gy[i] : T(0);
            if (ga) store(ga[i], call.adds(0), g * b[i]);
            if (gb) store(gb[i], call.adds(1), a ? g * a[i] : g);
        }
    }
};

}  // namespace few_inputs
