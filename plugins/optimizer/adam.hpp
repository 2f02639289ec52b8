// Adam with its variants.
#pragma once

#include <cmath>

#include "update_types.hpp"

namespace catena::plugins {

struct AdamUpdate {
    static constexpr auto about =
        describe(
            "catena.adam_update",
            "Adam(alpha, beta1, beta2, eps, eta, weight_decay_rate, amsgrad, adabound, final_lr, "
            "gamma): steps scaled by running moments m and v of grad (Kingma and Ba, 2014)\n"
            "- AdamW(alpha, beta1, beta2, eps, eta, weight_decay_rate): Adam with decoupled weight "
            "decay (Loshchilov and Hutter, 2019)\n"
            "- AMSGrad(alpha, beta1, beta2, eps, eta, amsgrad=true): Adam that divides by the "
            "largest v so far (Reddi, Kale and Kumar, 2018)\n"
            "- AdaBound(alpha, beta1, beta2, final_lr, gamma, eps, eta, adabound=true): Adam with "
            "bounds of the rates that converge to final_lr (Luo and others, 2019)\n"
            "- AMSBound(alpha, beta1, beta2, final_lr, gamma, eps, eta, amsgrad=true, "
            "adabound=true): AdaBound that divides by the largest v so far\n\n"
            "rate = alpha * sqrt(1 - beta2^t) / (1 - beta1^t) / (sqrt(v) + eps); "
            "param -= eta * (rate * m + weight_decay_rate * param). AdaBound clips rate to "
            "f * (1 - 1 / (gamma * t + 1)) and f * (1 + 1 / (gamma * t)), where f is final_lr * "
            "alpha / initial_alpha.",
            in(param, "grad", state("m", "mean of grad"), state("v", "mean of grad^2"),
               state("vhat", "the largest v, if amsgrad").optional()),
            out(), learning_rate(0.001, "alpha"), below_one(attr("beta1", 0.9, "decay of m")),
            below_one(attr("beta2", 0.999, "decay of v")),
            not_negative(attr("eps", 1e-8, "added to the root")), eta,
            weight_decay_rate(0, "decoupled weight decay"),
            attr("amsgrad", false, "whether to divide by vhat"),
            attr("adabound", false, "whether to clip rates to bounds"),
            not_negative(attr("final_lr", 0.1, "the rate to which the bounds converge")),
            attr("gamma", 1e-3, "speed of the bounds' convergence").range(0x1p-100, 1), step_number,
            not_negative(attr("initial_alpha", 0.0, "the alpha that final_lr is for; 0: any")),
            attr("lam", 1.0, "decay of beta1 with each step, of Chainer 1").range(0, 1))
            .since(2)
            .example("param=(2,3) grad=(2,3) m=(2,3) v=(2,3)[0.1,1] t=1 weight_decay_rate=0.1")
            .example(
                "param=(4) grad=(4) m=(4) v=(4)[0.1,1] t=10 alpha=0.1 beta1=0.5 beta2=0.9 eta=0.5 "
                "lam=0.75")
            .example(
                "param=(4) grad=(4) m=(4) v=(4)[0.1,1] t=3 adabound=true final_lr=0.1 gamma=0.5")
            .example(
                "param=(2,3) grad=(2,3) m=(2,3) v=(2,3)[0.1,1] vhat=(2,3)[2,3] t=1 amsgrad=true")
            .example(
                "param=(4) grad=(4) m=(4) v=(4)[0.1,1] vhat=(4)[0,0] t=3 amsgrad=true "
                "adabound=true alpha=0.01 initial_alpha=0.02");
    using types = UpdateTypes;

    static void infer(const auto& s) {
        const bool amsgrad = s.template attr<"amsgrad">();
        s.check(s.has(4) == amsgrad, "vhat", amsgrad ? "an array with amsgrad" : "none",
                amsgrad ? "none" : "an array without amsgrad", CATENA_E_INVALID);
    }

    template <class T>
    struct Constants {
        T decay1, decay2, step, eps, lower, upper, factor, keep;
    };
    template <class T>
    static Constants<T> prepare(double alpha, double beta1, double beta2, double eps, double eta,
                                double decay, double, double adabound, double final_lr,
                                double gamma, double t, double initial_alpha, double lam) {
        const double step = alpha * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
        const double bound = alpha == 0          ? 0
                             : initial_alpha > 0 ? final_lr * alpha / initial_alpha
                                                 : final_lr;
        const bool is_bounded = adabound != 0;
        return {static_cast<T>(1 - beta1 * std::pow(lam, t - 1)),
                static_cast<T>(1 - beta2),
                static_cast<T>(step),
                static_cast<T>(eps),
                is_bounded ? static_cast<T>(bound * (1 - 1 / (gamma * t + 1))) : T(0),
                is_bounded ? static_cast<T>(bound * (1 + 1 / (gamma * t)))
                           : std::numeric_limits<T>::infinity(),
                static_cast<T>(eta),
                static_cast<T>(1 - eta * decay)};
    }
    template <class T>
    CATENA_FN static void update(T& param, T grad, T& m, T& v, T* vhat, const Constants<T>& c) {
        m += c.decay1 * (grad - m);
        v += c.decay2 * (grad * grad - v);
        if (vhat != nullptr) *vhat = math::max(*vhat, v);
        const T rate = c.step / (math::sqrt(vhat != nullptr ? *vhat : v) + c.eps);
        const T bounded = rate < c.lower ? c.lower : rate > c.upper ? c.upper : rate;  // or NaN
        param = c.keep * param - c.factor * bounded * m;
    }
};

CATENA_FUNCTIONS(AdamUpdate);

}  // namespace catena::plugins
