// polar: two outputs; either or both may have a gradient.
#include <catena/plugin.hpp>

#include <cmath>

using namespace catena::plugin;

struct Polar {
    static constexpr auto about =
        describe("org.example.polar", "r, phi = length and angle of the vectors (x, y)",
                 in("x", "y"), out(Port("r", "at least 0"), Port("phi", "from -pi to pi")))
            .example("x=(2,3)[0.5,1] y=(2,3)[-1,1]")
            .example("x=()[0.5,1] y=()[0.5,1]");
    static constexpr auto retain_x = ports(0, 1);
    static constexpr auto retain_y = ports(0);

    static void infer(const auto& s) {
        s.check(std::ranges::equal(s.x(1), s.x(0)), "y.shape", s.x(0), s.x(1));
        s.y(0, s.x(0));
        s.y(1, s.x(0));
    }
    // g.gy(i) is the constant 0 if there is no gradient: products with it vanish.
    static void gradient(const auto& g) {
        const Var r = g.y(0);
        const Var cos = g.x(0) / r;
        const Var sin = g.x(1) / r;
        const Var along = g.gy(0);
        const Var across = g.gy(1) / r;
        g.gx(0, along * cos - across * sin);
        g.gx(1, along * sin + across * cos);
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template x<T>(1);
        const auto r = call.template y<T>(0);
        const auto phi = call.template y<T>(1);
        const bool add_r = call.adds(0);
        const bool add_phi = call.adds(1);
        call.parallel(r.size(), 16, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t i = begin; i < end; ++i) {
                store(r[i], add_r, std::hypot(x[i], y[i]));
                store(phi[i], add_phi, std::atan2(y[i], x[i]));
            }
        });
    }
    // The same as a kernel: gy is empty if there is no gradient, gx if none is wanted.
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto y = call.template x<T>(1);
        const auto r = call.template y<T>(0);
        const auto gr = call.template gy<T>(0);
        const auto gphi = call.template gy<T>(1);
        const auto gx = call.template gx<T>(0);
        const auto gy = call.template gx<T>(1);
        const bool add_x = gx && call.adds(0);
        const bool add_y = gy && call.adds(1);
        call.parallel(r.size(), 4, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t i = begin; i < end; ++i) {
                const T along = gr ? gr[i] / r[i] : T(0);
                const T across = gphi ? gphi[i] / (r[i] * r[i]) : T(0);
                if (gx) store(gx[i], add_x, along * x[i] - across * y[i]);
                if (gy) store(gy[i], add_y, along * y[i] + across * x[i]);
            }
        });
    }
};

CATENA_PLUGIN("org.example.polar", "1.0.0", Polar);
