// Losses of probabilities and distributions.
#pragma once

#include <numbers>

#include "reductions.hpp"

namespace catena::plugins {

struct SigmoidCrossEntropy {
    static constexpr auto about =
        describe("catena.sigmoid_cross_entropy",
                 "loss = -(t log p + (1 - t) log(1 - p)) with p = sigmoid(x), reduced\n\n"
                 "For integers or bool t, the mean is over the elements that are not ignored, 0 "
                 "if there are none.",
                 in(Port("x", "scores"),
                    Port("t", "labels 0, 1, or -1 to ignore an element, or probabilities").of("I")),
                 out("loss"),
                 attr("normalize", true,
                      "mean: over the elements; false: the sum divided by the length of axis 0"),
                 reduce_elements("mean"))
            .example("x=(2,3)[-4,4] t=(2,3)[-1,1]")
            .example("x=(2,3)[-4,4] t=(2,3)[-1,1] normalize=false")
            .example("x=(2,3)[-4,4] t=(2,3)[0,1] reduce=\"no\"");

    static Var compose(const auto& g) {
        check_same_shapes(g);
        const Var x = g.x(0), t = g.x(1);
        const catena_dtype dtype = x.dtype();
        const std::uint8_t code = t.dtype().code;
        const bool labels = code != CATENA_CODE_FLOAT && code != CATENA_CODE_BFLOAT;
        const bool averages = g.template attr<"reduce">() == "mean";
        const bool normalized = g.template attr<"normalize">();
        const auto loss = [](const Var& scores, const Var& targets) {
            return call<"catena.bce_with_logits">({scores, targets});
        };
        if (!labels && (normalized || !averages)) return reduced(g, loss(x, t));
        Var count = static_cast<double>(x.ndim() == 0 ? 1 : std::max<std::int64_t>(x.dim(0), 1));
        Var y;
        // In float32 for half precision, whose range is too small for the sum.
        const catena_dtype wide = is_half(dtype) ? dtype_of<float>() : dtype;
        if (labels) {
            // Scores that are ignored do not matter, even if they are NaN.
            const Var targets = cast(t, dtype), ignored = targets == -1.0;
            y = loss(math::where(ignored, 0.0, x), math::where(ignored, 0.0, targets));
            y = math::where(ignored, 0.0, y);
            if (!averages) return reduced(g, y);
            if (normalized) count = math::max(sum(cast(1.0 - ignored, wide)), 1.0);
        } else {
            y = loss(x, t);
        }
        return cast(sum(cast(y, wide)) / count, dtype);
    }
};

struct KlDiv {
    static constexpr const char* ways[] = {"mean", "sum", "no", "batchmean", nullptr};
    static constexpr auto about =
        describe("catena.kl_div",
                 "loss = t (log t - x), 0 where t is 0, reduced\n\n"
                 "The Kullback-Leibler divergence of log-probabilities x from probabilities t. As "
                 "in PyTorch, mean is that of the elements; batchmean, the sum divided by the "
                 "length of axis 0, is the mean of the divergences of a batch.",
                 in(Port("x", "log-probabilities"), Port("t", "probabilities")), out("loss"),
                 reduce_elements("mean", ways),
                 attr("log_target", false, "whether t are log-probabilities"))
            .example("x=(2,3)[-3,-0.1] t=(2,3)[0.1,1]")
            .example("x=(2,3)[-3,-0.1] t=(2,3)[-3,-0.1] reduce=\"batchmean\" log_target=true");
    static Var compose(const auto& g) {
        check_same_shapes(g);
        const bool is_log = g.template attr<"log_target">();
        const Var x = g.x(0), t = g.x(1), p = is_log ? math::exp(t) : t, zero = p == 0.0;
        const Var log_p = is_log ? t : math::log(math::where(zero, 1.0, t));
        return reduced(g, p * math::where(zero, 0.0, log_p - x));
    }
};

struct GaussianKlDivergence {
    static constexpr auto about =
        describe("catena.gaussian_kl_divergence",
                 "loss = (mean^2 + e^ln_var - ln_var - 1) / 2, reduced\n\n"
                 "The Kullback-Leibler divergence of normal distributions from N(0, 1).",
                 in("mean", Port("ln_var", "the logarithms of the variances")), out("loss"),
                 reduce_elements("sum"))
            .example("mean=(2,3) ln_var=(2,3)")
            .example("mean=(2,3) ln_var=(2,3) reduce=\"no\"");
    static Var compose(const auto& g) {
        check_same_shapes(g);
        return reduced(g, (g.x(0) * g.x(0) + math::exp(g.x(1)) - g.x(1) - 1.0) * 0.5);
    }
};

struct BernoulliNll {
    static constexpr auto about =
        describe("catena.bernoulli_nll",
                 "loss = -(x log p + (1 - x) log(1 - p)) with p = sigmoid(y), reduced\n\n"
                 "The negative log-likelihood of x under Bernoulli distributions.",
                 in("x", Port("y", "scores")), out("loss"), reduce_elements("sum"))
            .example("x=(2,3)[0,1] y=(2,3)[-2,2]")
            .example("x=(2,3)[0,1] y=(2,3)[-2,2] reduce=\"mean\"");
    static Var compose(const auto& g) {
        check_same_shapes(g);
        return reduced(g, call<"catena.bce_with_logits">({g.x(1), g.x(0)}));
    }
};

struct GaussianNll {
    static constexpr auto about =
        describe("catena.gaussian_nll",
                 "loss = ((x - mean)^2 e^-ln_var + ln_var + log(2 pi)) / 2, reduced\n\n"
                 "The negative log-likelihood of x under normal distributions.",
                 in("x", "mean", Port("ln_var", "the logarithms of the variances")), out("loss"),
                 reduce_elements("sum"))
            .example("x=(2,3) mean=(2,3) ln_var=(2,3)")
            .example("x=(2,3) mean=(2,3) ln_var=(2,3) reduce=\"no\"");
    static Var compose(const auto& g) {
        check_same_shapes(g);
        const Var d = g.x(0) - g.x(1), ln_var = g.x(2);
        const double constant = std::log(2 * std::numbers::pi);
        return reduced(g, (d * d * math::exp(-ln_var) + ln_var + constant) * 0.5);
    }
};

CATENA_FUNCTIONS(SigmoidCrossEntropy, KlDiv, GaussianKlDivergence, BernoulliNll, GaussianNll);

}  // namespace catena::plugins
