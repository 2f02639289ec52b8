// Normalisation with given statistics, as used in inference.
#pragma once

#include <cmath>

#include <catena/plugin/precision.hpp>

#include "channels.hpp"

namespace catena::plugins {

struct FixedBatchNormalization {
    static constexpr auto about =
        describe("catena.fixed_batch_normalization",
                 "y = gamma (x - mean) / sqrt(var + eps) + beta, with mean and var given",
                 in(Port("x", "(N, C, ...)"), Port("gamma", "(C,)"), Port("beta", "(C,)"),
                    Port("mean", "(C,)").of("S"), Port("var", "(C,)").of("S")),
                 out("y"), eps_attr)
            .example("x=(2,3) gamma=(3) beta=(3) mean=(3) var=(3)[0.5,1.5]")
            .example("x=(2,2,3,2) gamma=(2) beta=(2) mean=(2) var=(2)[0.5,1.5] eps=0.001");
    using types = StatisticTypes;
    static constexpr auto retain_x = ports(0, 1, 3, 4);

    static void infer(const auto& s) {
        check_channels(s);
        s.y(0, s.x(0));
    }
    static void gradient(const auto& g) {
        const AllButChannels over(g.x_shape(0));
        // The statistics of half-precision inputs are float32, and so are the sums.
        const auto result = [&](std::size_t i, const Var& gx) {
            g.gx(i, in_dtype(gx, g.x_meta(i).dtype));
        };
        const Var gy = widened(g.gy(0)), var = g.x(4) + g.template attr<"eps">();
        const Var scale = widened(g.x(1)) / math::sqrt(var);
        if (g.wants(0)) result(0, gy * over.spread(scale));
        if (g.wants(1) || g.wants(4)) {
            const Var centred = widened(g.x(0)) - over.spread(g.x(3));
            const Var slope = over.total(gy * centred, false);
            if (g.wants(1)) result(1, slope / math::sqrt(var));
            if (g.wants(4)) result(4, -0.5 * slope * scale / var);
        }
        if (g.wants(2) || g.wants(3)) {
            const Var total = over.total(gy, false);
            if (g.wants(2)) result(2, total);
            if (g.wants(3)) result(3, -(total * scale));
        }
    }

    template <class T, class S>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const T* const gamma = call.template x<T>(1).data;
        const T* const beta = call.template x<T>(2).data;
        const S* const mean = call.template x<S>(3).data;
        const S* const var = call.template x<S>(4).data;
        T* const y = call.template y<T>(0).data;
        const bool add = call.adds(0);
        const double eps = call.template attr<"eps">();
        const Channels of(x.shape);
        for_each_group(call, of, [&](const Group& group) CATENA_LAMBDA {
            const T* const p = x.data;
            T scale[most_columns];
            T centre[most_columns];
            T shift[most_columns];
            for (std::int64_t c = 0; c < group.width; ++c) {
                const std::int64_t at = group.first + c;
                const double v = static_cast<double>(var[at]) + eps;
                scale[c] = static_cast<T>(static_cast<double>(gamma[at]) / std::sqrt(v));
                centre[c] = mean[at];
                shift[c] = beta[at];
            }
            group.spread(scale, centre, shift);
            group.map([&](std::int64_t i, std::int64_t k) CATENA_LAMBDA {
                store(y[i], add, (p[i] - centre[k]) * scale[k] + shift[k]);
            });
        });
    }
};

CATENA_FUNCTIONS(FixedBatchNormalization);

}  // namespace catena::plugins
