// Normalisation over the minibatch (Ioffe and Szegedy, 2015).
#pragma once

#include "channels.hpp"

#include <cmath>

namespace catena::plugins {

struct BatchNormalization {
    static constexpr auto about =
        describe(
            "catena.batch_normalization",
            "y = gamma (x - mean) / sqrt(var + eps) + beta, with mean and var of each channel\n\n"
            "Both are computed over all axes except axis 1; var is the biased variance. (Ioffe and "
            "Szegedy, \"Batch Normalization\", ICML 2015.)",
            in(Port("x", "(N, C, ...)"), Port("gamma", "(C,)"), Port("beta", "(C,)")),
            out("y", Port("mean", "(C,)").of("S").hidden(), Port("var", "(C,)").of("S").hidden()),
            eps_attr)
            .example("x=(4,3) gamma=(3) beta=(3)")
            .example("x=(2,2,3,2) gamma=(2)[0.5,1.5] beta=(2) eps=0.001")
            .example("x=(3,1,4) gamma=(1) beta=(1)");
    using types = StatisticTypes;
    static constexpr auto retain_x = ports(0, 1);
    static constexpr auto retain_y = ports(1, 2);

    static void infer(const auto& s) {
        check_channels(s);
        s.y(0, s.x(0));
        s.y(1, s.x(1), s.wide(0));
        s.y(2, s.x(1), s.wide(0));
    }
    static void gradient(const auto& g) {
        const AllButChannels over(g.x_shape(0));
        const Var x = g.x(0);
        const Var gy = g.gy(0);
        const Var centred = x - over.mean(x);
        const Var inverse =
            1.0 / math::sqrt(over.mean(centred * centred) + g.template attr<"eps">());
        const Var normal = centred * inverse;
        if (g.wants(0)) {
            const Var gn = gy * over.spread(g.x(1));
            g.gx(0, inverse * (gn - over.mean(gn) - normal * over.mean(gn * normal)));
        }
        if (g.wants(1)) g.gx(1, over.total(gy * normal, false));
        if (g.wants(2)) g.gx(2, over.total(gy, false));
    }

    template <class T, class S>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const T* const gamma = call.template x<T>(1).data;
        const T* const beta = call.template x<T>(2).data;
        T* const y = call.template y<T>(0).data;
        S* const mean = call.template y<S>(1).data;
        S* const var = call.template y<S>(2).data;
        const bool add = call.adds(0);
        const double eps = call.template attr<"eps">();
        const Channels of(x.shape);
        const double share = 1 / static_cast<double>(std::max<std::int64_t>(of.size(), 1));
        for_each_group(call, of, [&](const Group& group) CATENA_LAMBDA {
            const T* const p = x.data;
            double sums[1][most_columns];
            T centre[most_columns];
            T scale[most_columns];
            T shift[most_columns];
            group.sum<T>(sums, [&](std::int64_t i, std::int64_t)
                                   CATENA_LAMBDA { return std::array<T, 1>{p[i]}; });
            for (std::int64_t c = 0; c < group.width; ++c) {
                centre[c] = static_cast<T>(sums[0][c] * share);
                store(mean[group.first + c], call.adds(1), static_cast<S>(centre[c]));
            }
            group.spread(centre);
            group.sum<T>(sums, [&](std::int64_t i, std::int64_t k) CATENA_LAMBDA {
                const T d = p[i] - centre[k];
                return std::array<T, 1>{d * d};
            });
            for (std::int64_t c = 0; c < group.width; ++c) {
                const std::int64_t at = group.first + c;
                const double v = sums[0][c] * share;
                store(var[at], call.adds(2), static_cast<S>(v));
                scale[c] = static_cast<T>(static_cast<double>(gamma[at]) / std::sqrt(v + eps));
                shift[c] = beta[at];
            }
            group.spread(scale, shift);
            group.map([&](std::int64_t i, std::int64_t k) CATENA_LAMBDA {
                store(y[i], add, (p[i] - centre[k]) * scale[k] + shift[k]);
            });
        });
    }

    template <class T, class S>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto x = call.template x<T>(0);
        const T* const gamma = call.template x<T>(1).data;
        const S* const mean = call.template y<S>(1).data;
        const S* const var = call.template y<S>(2).data;
        const T* const gy = call.template gy<T>(0).data;
        const auto gx = call.template gx<T>(0);
        const auto ggamma = call.template gx<T>(1);
        const auto gbeta = call.template gx<T>(2);
        const bool add_x = gx && call.adds(0);
        const bool add_gamma = ggamma && call.adds(1);
        const bool add_beta = gbeta && call.adds(2);
        const double eps = call.template attr<"eps">();
        const Channels of(x.shape);
        const double share = 1 / static_cast<double>(std::max<std::int64_t>(of.size(), 1));
        for_each_group(call, of, [&](const Group& group) CATENA_LAMBDA {
            const T* const p = x.data;
            T centre[most_columns];
            T inverse[most_columns];
            T scale[most_columns];
            double sums[2][most_columns];  // per channel: of gy, and of gy times the normalized x
            for (std::int64_t c = 0; c < group.width; ++c) {
                const std::int64_t at = group.first + c;
                centre[c] = mean[at];
                inverse[c] = static_cast<T>(1 / std::sqrt(static_cast<double>(var[at]) + eps));
                scale[c] = gamma[at] * inverse[c];
            }
            group.spread(centre, inverse);
            group.sum<T>(sums, [&](std::int64_t i, std::int64_t k) CATENA_LAMBDA {
                return std::array<T, 2>{gy[i], gy[i] * ((p[i] - centre[k]) * inverse[k])};
            });
            T mean_g[most_columns];
            T mean_gn[most_columns];
            for (std::int64_t c = 0; c < group.width; ++c) {
                const std::int64_t at = group.first + c;
                if (gbeta) store(gbeta[at], add_beta, static_cast<T>(sums[0][c]));
                if (ggamma) store(ggamma[at], add_gamma, static_cast<T>(sums[1][c]));
                mean_g[c] = static_cast<T>(sums[0][c] * share);
                mean_gn[c] = static_cast<T>(sums[1][c] * share);
            }
            T* const out = gx.data;
            if (!gx) return;
            group.spread(scale, mean_g, mean_gn);
            group.map([&](std::int64_t i, std::int64_t k) CATENA_LAMBDA {
                const T normal = (p[i] - centre[k]) * inverse[k];
                store(out[i], add_x, scale[k] * (gy[i] - mean_g[k] - normal * mean_gn[k]));
            });
        });
    }
};

// Updates running statistics with those of a minibatch.
struct RunningUpdate {
    static constexpr auto about =
        describe("catena.running_update", "average = share * average + (1 - share) * scale * value",
                 in(Port("average").mutated(), Port("value", "float32 for halves").of("S")), out(),
                 required<double>("share", "of the average that stays").range(0, 1),
                 attr("scale", 1.0, "factor of the value"))
            .internal()
            .example("average=(3) value=(3) share=0.9 scale=1.25")
            .example("average=() value=() share=0");
    using types = StatisticTypes;

    template <class T>
    CATENA_FN static void update(T& average, T value, T share, T scale) {
        average = share * average + (T(1) - share) * (scale * value);
    }
};

CATENA_FUNCTIONS(BatchNormalization, RunningUpdate);

}  // namespace catena::plugins
