// Negative log-likelihood of labels, from log-probabilities.
#pragma once

#include "labels.hpp"

namespace catena::plugins {

struct NllLoss {
    static constexpr auto about =
        describe("catena.nll_loss",
                 "loss = mean of -x[t], for log-probabilities x\n\n"
                 "Weights, ignored labels and reductions are those of softmax_cross_entropy, which "
                 "is nll_loss of a log-softmax.",
                 in(Port("x", "log-probabilities (N, classes, ...)"),
                    Port("t", "labels (N, ...)").of("I").not_differentiable(), class_weight),
                 out(Port("loss", "(), or (N, ...) if it is not reduced"),
                     Port("norms", "what the sum is divided by (1,)").of("S").hidden()),
                 ignore_label, reduce, normalize)
            .example("x=(3,4) t=(3)[0,3]")
            .example("x=(2,3,2) t=(2,2)[0,2] class_weight=(3)[0.5,2]")
            .example("x=(4,2) t=(4) ignore_label=0 reduce=\"no\"")
            .example("x=(4,2) t=(4) reduce=\"sum\"")
            .example("x=(2,3,2) t=(2,2)[0,2] normalize=false");
    using types = LossTypes;
    using isas = IsaList<Isa::baseline>;
    static constexpr auto retain_x = ports(0, 1, 2);
    static constexpr auto retain_y = ports(1);

    static void infer(const auto& s) {
        infer_loss(s);
        s.y(1, {1}, s.wide(0));
    }
    static void gradient(const auto& g) {
        const auto attrs = {g.same("ignore_label")};
        const Var q = g.has(2) ? call<"catena.label_targets">({g.x(0), g.x(1), g.x(2)}, attrs)
                               : call<"catena.label_targets">({g.x(0), g.x(1)}, attrs);
        g.gx(0, -(q * gradient_of_losses(g, 1)));
    }

    template <class T, class, class>
    static void plan(const auto& call, catena_plan& plan) {
        plan_losses(call, plan);
    }
    template <class T, class I, class>
    CATENA_KERNEL static void forward(const auto& call) {
        const auto x = call.template x<T>(0);
        const auto t = call.template x<I>(1);
        const ClassWeights<T> weight = {call.template x<T>(2).data};
        const Axis axis(x.shape, 1);
        const double by = divisor(call, t, axis.length, weight);
        store(call.template y<T>(1)[0], call.adds(1), static_cast<T>(by));
        double* const losses = call.template scratch<double>();
        const Labels labels(call, t);
        for (std::int64_t i = 0; i < t.size(); ++i)
            losses[i] = t[i] == labels.ignored
                            ? 0.0
                            : -static_cast<double>(weight[t[i]] * x[place_of(axis, labels, i)]);
        store_losses<T>(call, losses, t.size(), by);
    }
    template <class T, class I, class>
    CATENA_KERNEL static void backward(const auto& call) {
        const auto t = call.template x<I>(1);
        const auto gx = call.template gx<T>(0);
        if (!gx) return;
        const ClassWeights<T> weight = {call.template x<T>(2).data};
        const Axis axis(gx.shape, 1);
        const Labels labels(call, t);
        count_labels(call, t, axis.length, labels.ignored);
        if (!call.adds(0)) std::fill_n(gx.data, gx.size(), T(0));
        const LossGradient<T> gy(call);
        const T by = call.template y<T>(1)[0];
        for (std::int64_t i = 0; i < t.size(); ++i)
            if (t[i] != labels.ignored)
                gx[place_of(axis, labels, i)] -= weight[t[i]] * (gy[i] / by);
    }

    // Returns the offset of the element of x that label i selects.
    CATENA_FN static std::int64_t place_of(const Axis& axis, const Labels& t, std::int64_t i) {
        return (i / axis.inner * axis.length + t[i]) * axis.inner + i % axis.inner;
    }
};

CATENA_FUNCTIONS(NllLoss);

}  // namespace catena::plugins
