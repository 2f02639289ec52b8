// Normalizations that are compositions.
#pragma once

#include "channels.hpp"

namespace catena::plugins {

struct InstanceNormalization {
    static constexpr auto about =
        describe(
            "catena.instance_normalization",
            "y = gamma (x - mean) / sqrt(var + eps) + beta, with mean and var of each channel of "
            "each sample\n\n(Ulyanov, Vedaldi and Lempitsky, \"Instance Normalization\", 2016.)",
            in(Port("x", "(N, C, ...)"), Port("gamma", "(C,); missing: 1").optional(),
               Port("beta", "(C,); missing: 0").optional()),
            out("y"), eps_attr)
            .example("x=(2,2,5) gamma=(2) beta=(2)")
            .example("x=(1,2,3,2) eps=0.001");
    static Var compose(const auto& g) {
        g.check_least_ndim(0, 2);
        const std::int64_t channels = g.x(0).dim(1);
        if (channels == 0) return g.x(0);
        return call<"catena.group_normalization">({g.x(0), g.x(1), g.x(2)},
                                                  {set("groups", channels), g.same("eps")});
    }
};

struct Normalize {
    static constexpr std::int64_t channels[] = {1};
    static constexpr auto about =
        describe(
            "catena.normalize",
            "y = x / (norm + eps), with the root of the sum of squares along axes as the norm\n\n"
            "The gradient of a norm of 0 is 0.",
            in("x"), out("y"), attr("eps", 1e-5, "added to the norm"),
            attr("axis", Ints(channels), "the axes, negative ones from the last"))
            .example("x=(2,3)")
            .example("x=(2,3,4) axis=[0,-1] eps=0.5");
    static Var compose(const auto& g) {
        const Var norm = call<"catena.norm">({g.x(0)}, {g.same("axis"), set("keepdims", true)});
        return g.x(0) / (norm + g.template attr<"eps">());
    }
};

struct WeightStandardization {
    static constexpr auto about =
        describe(
            "catena.weight_standardization",
            "y = (W - mean) / sqrt(var + eps), with mean and var of the weights W[i] of each "
            "output\n\n(Qiao et al., \"Micro-Batch Training with Batch-Channel Normalization and "
            "Weight Standardization\", 2019.)",
            in(Port("W", "(outputs, ...)")), out("y"), eps_attr)
            .example("W=(2,3,2)");
    static Var compose(const auto& g) {
        g.check_least_ndim(0, 1);
        const Meta W = g.x_meta(0);
        if (W.size() == 0) return g.x(0);
        const Var flat = reshape(g.x(0), {W.dim(0), -1});
        return reshape(call<"catena.layer_normalization">({flat, Var::missing(), Var::missing()},
                                                          {g.same("eps")}),
                       W.shape());
    }
};

struct BatchRenormalization {
    static constexpr auto about =
        describe(
            "catena.batch_renormalization",
            "y = gamma (r (x - mean) / sqrt(var + eps) + d) + beta, with mean and var of each "
            "channel\n\n"
            "r and d correct y towards the running statistics: r is the ratio of the standard "
            "deviations, limited to 1 / rmax <= r <= rmax, and d is the difference of the means "
            "divided by the running deviation, limited to -dmax <= d <= dmax. Both are constants "
            "for gradients. (Ioffe, \"Batch Renormalization\", 2017.)",
            in(Port("x", "(N, C, ...)"), Port("gamma", "(C,)"), Port("beta", "(C,)"),
               Port("running_mean", "(C,)").of("R").not_differentiable(),
               Port("running_var", "(C,)").of("R").not_differentiable()),
            out("y", Port("mean", "of the batch: (C,)").of("S").not_differentiable(),
                Port("var", "as mean").of("S").not_differentiable()),
            required<double>("rmax", "the limit of r"), required<double>("dmax", "the limit of d"),
            eps_attr)
            .example(
                "x=(4,3) gamma=(3) beta=(3) running_mean=(3) running_var=(3)[0.5,1.5] rmax=1 "
                "dmax=0")
            .example(
                "x=(2,2,3) gamma=(2) beta=(2) running_mean=(2)[2,3] running_var=(2)[0.01,0.02] "
                "rmax=1 dmax=0 eps=0.001");
    static std::array<Var, 3> compose(const auto& g) {
        g.check_least_ndim(0, 2);
        const Meta x = g.x_meta(0);
        for (std::size_t i = 1; i < 5; ++i) g.check_shape(i, {x.dim(1)});
        const double rmax = g.template attr<"rmax">(), dmax = g.template attr<"dmax">();
        const double eps = g.template attr<"eps">();
        g.check(rmax > 0, "rmax", "above 0", text_of(rmax), CATENA_E_INVALID);
        const Var one = full({x.dim(1)}, 1, x.dtype), zero = full({x.dim(1)}, 0, x.dtype);
        const auto [normal, mean, var] =
            call_all<"catena.batch_normalization", 3>({g.x(0), one, zero}, {g.same("eps")});
        const auto constant = [](const Var& v) { return call<"catena.detached">({v}); };
        const auto limited = [](const Var& v, double low, double high) {
            return math::min(math::max(v, low), high);
        };
        const Var deviation = math::sqrt(cast(g.x(4), var.dtype()) + eps);
        const Var r = limited(math::sqrt(constant(var) + eps) / deviation, 1 / rmax, rmax);
        const Var d =
            limited((constant(mean) - cast(g.x(3), mean.dtype())) / deviation, -dmax, dmax);
        const auto spread = [&](const Var& v) {  // along the axes of x
            List shape(x.shape().size(), 1);
            shape[1] = x.dim(1);
            return reshape(cast(v, x.dtype), shape);
        };
        const Var y = (normal * spread(r) + spread(d)) * spread(g.x(1)) + spread(g.x(2));
        return {y, mean, var};
    }
};

CATENA_FUNCTIONS(InstanceNormalization, Normalize, WeightStandardization, BatchRenormalization);

}  // namespace catena::plugins
