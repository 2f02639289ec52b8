// Normalisation with given statistics, as used in inference.
#pragma once

#include "channels.hpp"

#include <cmath>

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
        // Casts v to the dtype of `like`: the statistics of half-precision inputs are float32.
        const auto as = [](const Var& v, const catena_meta& like) {
            return same(v.meta().dtype, like.dtype) ? v : cast(v, like.dtype);
        };
        const Var gy = g.gy(0);
        const Var gamma = g.x(1);
        const Var var = as(g.x(4), g.x_meta(0)) + g.template attr<"eps">();
        const Var scale = gamma / math::sqrt(var);
        const Var centred = g.x(0) - over.spread(as(g.x(3), g.x_meta(0)));
        const Var total = over.total(gy, false);
        const Var slope = over.total(gy * centred, false);
        if (g.wants(0)) g.gx(0, gy * over.spread(scale));
        if (g.wants(1)) g.gx(1, slope / math::sqrt(var));
        if (g.wants(2)) g.gx(2, total);
        if (g.wants(3)) g.gx(3, as(-(total * scale), g.x_meta(3)));
        if (g.wants(4)) g.gx(4, as(-0.5 * slope * scale / var, g.x_meta(4)));
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

    template <class T, class S>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const T* const gamma = call.template x<T>(1).data;
        const S* const mean = call.template x<S>(3).data;
        const S* const var = call.template x<S>(4).data;
        const T* const gy = call.template gy<T>(0).data;
        const auto gx = call.template gx<T>(0);
        const auto ggamma = call.template gx<T>(1);
        const auto gbeta = call.template gx<T>(2);
        const auto gmean = call.template gx<S>(3);
        const auto gvar = call.template gx<S>(4);
        const double eps = call.template attr<"eps">();
        const Channels of(x.shape);
        const bool sums_wanted = ggamma || gbeta || gmean || gvar;
        for_each_group(call, of, [&](const Group& group) CATENA_LAMBDA {
            const T* const p = x.data;
            T centre[most_columns];
            T scale[most_columns];
            double sums[2][most_columns];  // per channel: of gy, and of gy times the centred value
            for (std::int64_t c = 0; c < group.width; ++c) {
                const std::int64_t at = group.first + c;
                const double v = static_cast<double>(var[at]) + eps;
                centre[c] = mean[at];
                scale[c] = static_cast<T>(static_cast<double>(gamma[at]) / std::sqrt(v));
            }
            group.spread(centre, scale);
            if (gx) {
                T* const out = gx.data;
                const bool add = call.adds(0);
                group.map([&](std::int64_t i, std::int64_t k)
                              CATENA_LAMBDA { store(out[i], add, gy[i] * scale[k]); });
            }
            if (!sums_wanted) return;
            group.sum<T>(sums, [&](std::int64_t i, std::int64_t k) CATENA_LAMBDA {
                return std::array<T, 2>{gy[i], gy[i] * (p[i] - centre[k])};
            });
            for (std::int64_t c = 0; c < group.width; ++c) {
                const std::int64_t at = group.first + c;
                const double v = static_cast<double>(var[at]) + eps;
                const double slope = sums[1][c];
                const double s = static_cast<double>(gamma[at]) / std::sqrt(v);
                if (ggamma) store(ggamma[at], call.adds(1), static_cast<T>(slope / std::sqrt(v)));
                if (gbeta) store(gbeta[at], call.adds(2), static_cast<T>(sums[0][c]));
                if (gmean) store(gmean[at], call.adds(3), static_cast<S>(-sums[0][c] * s));
                if (gvar) store(gvar[at], call.adds(4), static_cast<S>(-0.5 * slope * s / v));
            }
        });
    }
};

CATENA_FUNCTIONS(FixedBatchNormalization);

}  // namespace catena::plugins
