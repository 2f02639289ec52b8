// Adam (Kingma and Ba, 2014, first version: the first moment's decay shrinks by lam each step).
#pragma once

#include <cmath>

#include "update_types.hpp"

namespace catena::plugins {

struct AdamUpdate {
    static constexpr auto about =
        describe("catena.adam_update",
                 "param -= step * m / (sqrt(v) + eps), with running moments m and v",
                 in(Port("param").mutated(), "grad", state("m", "mean of grad"),
                    state("v", "mean of grad^2")),
                 out(), not_negative(attr("alpha", 0.001, "the step size")),
                 below_one(attr("beta1", 0.9, "decay of m")),
                 below_one(attr("beta2", 0.999, "decay of v")),
                 attr("lam", 1 - 1e-8, "decay of beta1").range(0, 1),
                 not_negative(attr("eps", 1e-8, "added to sqrt(v)")),
                 required<std::int64_t>("t", "the number of this update, from 1").range(1, 0x1p62))
            .example("param=(2,3) grad=(2,3) m=(2,3) v=(2,3)[0.1,1] t=1")
            .example(
                "param=(4) grad=(4) m=(4) v=(4)[0.1,1] t=10 alpha=0.1 beta1=0.5 beta2=0.9 "
                "lam=0.75");
    using types = UpdateTypes;

    template <class T>
    struct Constants {
        T step, decay1, decay2, eps;
    };
    template <class T>
    static Constants<T> prepare(double alpha, double beta1, double beta2, double lam, double eps,
                                double t) {
        const double step = alpha * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
        const double now = beta1 * std::pow(lam, t - 1);
        return {static_cast<T>(step), static_cast<T>(1 - now), static_cast<T>(1 - beta2),
                static_cast<T>(eps)};
    }
    template <class T>
    CATENA_FN static void update(T& param, T grad, T& m, T& v, const Constants<T>& c) {
        m += c.decay1 * (grad - m);
        v += c.decay2 * (grad * grad - v);
        param -= c.step * m / (math::sqrt(v) + c.eps);
    }
};

CATENA_FUNCTIONS(AdamUpdate);

}  // namespace catena::plugins
