// Mean of squared differences.
#pragma once

#include <catena/plugin.hpp>
#include <catena/plugin/rows.hpp>

namespace catena::plugins {

using namespace catena::plugin;

struct MeanSquaredError {
    static constexpr auto about =
        describe("catena.mean_squared_error", "loss = mean of (x0 - x1)^2 over all elements",
                 in("x0", "x1"), out(Port("loss", "()")))
            .example("x0=(2,3) x1=(2,3)")
            .example("x0=() x1=()");
    static constexpr auto retain_x = ports(0, 1);

    static void infer(const auto& s) {
        s.check_shape(1, s.x(0));
        s.y(0, {});
    }
    static void gradient(const auto& g) {
        const Var g0 =
            g.gy(0) * (2.0 / static_cast<double>(size_of(g.x_shape(0)))) * (g.x(0) - g.x(1));
        if (g.wants(0)) g.gx(0, g0);
        if (g.wants(1)) g.gx(1, -g0);
    }

    template <class T>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto a = call.template x<T>(0);
        const auto b = call.template x<T>(1);
        const std::int64_t n = a.size();
        constexpr std::int64_t most = 64;
        const std::int64_t pieces = std::clamp<std::int64_t>(n / piece_work, 1, most);
        double part[most];
        call.parallel(pieces, n / pieces, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
            for (std::int64_t k = begin; k < end; ++k) {
                double sum = 0;
                for (std::int64_t i = n * k / pieces; i < n * (k + 1) / pieces; i += 4096) {
                    const T* const p = a.data + i;
                    const T* const q = b.data + i;
                    sum += static_cast<double>(
                        sum_lanes<T>(std::min<std::int64_t>(4096, n * (k + 1) / pieces - i),
                                     [&](std::int64_t j)
                                         CATENA_LAMBDA { return (p[j] - q[j]) * (p[j] - q[j]); }));
                }
                part[k] = sum;
            }
        });
        double total = 0;
        for (std::int64_t k = 0; k < pieces; ++k) total += part[k];
        store(call.template y<T>(0)[0], call.adds(0),
              static_cast<T>(total / static_cast<double>(n)));
    }
    template <class T>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto a = call.template x<T>(0);
        const auto b = call.template x<T>(1);
        const T scale = call.template gy<T>(0)[0] * T(2) / static_cast<T>(a.size());
        for (std::size_t k = 0; k < 2; ++k) {
            const auto gx = call.template gx<T>(k);
            if (!gx) continue;
            const bool add = call.adds(k);
            const T factor = k == 0 ? scale : -scale;
            call.parallel(a.size(), 1, [&](std::int64_t begin, std::int64_t end) CATENA_LAMBDA {
                const T* const p = a.data;
                const T* const q = b.data;
                T* const out = gx.data;
                const T f = factor;
                CATENA_LOOP
                for (std::int64_t i = begin; i < end; ++i)
                    out[i] = (add ? out[i] : T(0)) + f * (p[i] - q[i]);
            });
        }
    }
};

CATENA_FUNCTIONS(MeanSquaredError);

}  // namespace catena::plugins
