// Adam with decoupled weight decay, and its variants.
#pragma once

#include <cmath>

#include "update_types.hpp"

namespace catena::plugins {

// AdamW (Loshchilov and Hutter, ICLR 2019) with the bounds of AdaBound (Luo and others, ICLR 2019). eps is
// added to the bias-corrected root, as in PyTorch.
template <class T>
struct Moments {
    T step, root, decay1, decay2, eps, keep, lower, upper;

    Moments(double alpha, double beta1, double beta2, double eps_, double decay, double final_lr,
            double gamma, double t)
        : step(static_cast<T>(alpha / (1 - std::pow(beta1, t)))),
          root(static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, t)))),
          decay1(static_cast<T>(1 - beta1)),
          decay2(static_cast<T>(1 - beta2)),
          eps(static_cast<T>(eps_)),
          keep(static_cast<T>(1 - alpha * decay)),
          lower(static_cast<T>(final_lr * (1 - 1 / (gamma * t + 1)))),
          upper(final_lr > 0 ? static_cast<T>(final_lr * (1 + 1 / (gamma * t)))
                             : std::numeric_limits<T>::infinity()) {}

    CATENA_FN void take(T grad, T& m, T& v) const {
        m += decay1 * (grad - m);
        v += decay2 * (grad * grad - v);
    }
    // The quotient of the moments, without the bounds.
    CATENA_FN T scale(T v) const { return step / (math::sqrt(v) * root + eps); }
    CATENA_FN void apply(T& param, T m, T v) const {
        param = keep * param - math::min(math::max(scale(v), lower), upper) * m;
    }
};

constexpr auto adaptive(const char* name, const char* doc, const auto& inputs, double alpha,
                        double decay) {
    return describe(
        name, doc, inputs, out(), not_negative(attr("alpha", alpha, "the learning rate")),
        below_one(attr("beta1", 0.9, "decay of m")), below_one(attr("beta2", 0.999, "decay of v")),
        not_negative(attr("eps", 1e-8, "added to the root")), decoupled_decay(decay),
        not_negative(
            attr("final_lr", 0.0, "the rate to which AdaBound's bounds converge; 0: none")),
        attr("gamma", 1e-3, "speed of the bounds' convergence").range(0x1p-100, 1),
        required<std::int64_t>("t", "the number of this update, from 1").range(1, 0x1p62));
}

struct AdamWUpdate {
    static constexpr auto about =
        adaptive(
            "catena.adam_w_update",
            "param -= alpha * (m' / (sqrt(v') + eps) + decay * param), with running moments m and "
            "v, whose bias is corrected in m' and v'\n\nWith final_lr, alpha / (sqrt(v') + eps) "
            "is clipped to AdaBound's bounds.",
            in(Port("param").mutated(), "grad", state("m", "mean of grad"),
               state("v", "mean of grad^2")),
            0.001, 0.01)
            .example("param=(2,3) grad=(2,3) m=(2,3) v=(2,3)[0.1,1] t=1")
            .example("param=(4) grad=(4) m=(4) v=(4)[0.1,1] t=10 alpha=0.1 beta1=0.5 beta2=0.9")
            .example("param=(4) grad=(4) m=(4) v=(4)[0.1,1] t=3 final_lr=0.1 gamma=0.5 decay=0");
    using types = UpdateTypes;

    template <class T>
    static Moments<T> prepare(double alpha, double beta1, double beta2, double eps, double decay,
                              double final_lr, double gamma, double t) {
        return {alpha, beta1, beta2, eps, decay, final_lr, gamma, t};
    }
    template <class T>
    CATENA_FN static void update(T& param, T grad, T& m, T& v, const Moments<T>& c) {
        c.take(grad, m, v);
        c.apply(param, m, v);
    }
};

// AMSGrad (Reddi, Kale and Kumar, ICLR 2018), and AMSBound with final_lr.
struct AmsGradUpdate {
    static constexpr auto about =
        adaptive("catena.ams_grad_update",
                 "as adam_w_update, with vhat, the largest v so far, in place of v",
                 in(Port("param").mutated(), "grad", state("m", "mean of grad"),
                    state("v", "mean of grad^2"), state("vhat", "the largest v")),
                 0.001, 0)
            .example("param=(2,3) grad=(2,3) m=(2,3) v=(2,3)[0.1,1] vhat=(2,3)[2,3] t=1")
            .example(
                "param=(4) grad=(4) m=(4) v=(4)[0.1,1] vhat=(4)[0,0] t=3 final_lr=0.1 decay=0.1");
    using types = UpdateTypes;

    template <class T>
    static Moments<T> prepare(double alpha, double beta1, double beta2, double eps, double decay,
                              double final_lr, double gamma, double t) {
        return {alpha, beta1, beta2, eps, decay, final_lr, gamma, t};
    }
    template <class T>
    CATENA_FN static void update(T& param, T grad, T& m, T& v, T& vhat, const Moments<T>& c) {
        c.take(grad, m, v);
        vhat = math::max(vhat, v);
        c.apply(param, m, vhat);
    }
};

// The first part of LAMB (You and others, ICLR 2020): moments and the direction of the step, whose length
// depends on norms.
struct LambDirectionUpdate {
    static constexpr auto about =
        describe("catena.lamb_direction_update",
                 "r = m' / (sqrt(v') + eps) + decay * param, with running moments m and v, whose "
                 "bias is "
                 "corrected in m' and v'",
                 in("param", "grad", state("m", "mean of grad"), state("v", "mean of grad^2"),
                    state("r", "the direction")),
                 out(), below_one(attr("beta1", 0.9, "decay of m")),
                 below_one(attr("beta2", 0.999, "decay of v")),
                 not_negative(attr("eps", 1e-6, "added to the root")), decoupled_decay(0.01),
                 required<std::int64_t>("t", "the number of this update, from 1").range(1, 0x1p62))
            .internal()
            .example("param=(2,3) grad=(2,3) m=(2,3) v=(2,3)[0.1,1] r=(2,3) t=2");
    using types = UpdateTypes;

    template <class T>
    struct Constants {
        Moments<T> moments;
        T decay;
    };
    template <class T>
    static Constants<T> prepare(double beta1, double beta2, double eps, double decay, double t) {
        return {{1, beta1, beta2, eps, 0, 0, 1, t}, static_cast<T>(decay)};
    }
    template <class T>
    CATENA_FN static void update(T param, T grad, T& m, T& v, T& r, const Constants<T>& c) {
        c.moments.take(grad, m, v);
        r = c.moments.scale(v) * m + c.decay * param;
    }
};

// The second part of LAMB: |param| / |r| from the squares of both norms, and the step.
struct TrustRatio {
    static constexpr auto about =
        describe("catena.trust_ratio", "y = sqrt(x0) / sqrt(x1), or 1 if x0 or x1 is 0",
                 in("x0", "x1"), out("y"))
            .not_differentiable()
            .internal()
            .example("x0=(2,3)[0.5,1] x1=(2,3)[0.5,1]")
            .example("x0=(2)[0,0] x1=(2)[0.5,1]")
            .example("x0=(2)[0.5,1] x1=(2)[0,0]");

    template <class T>
    CATENA_FN static T forward(T x0, T x1) {
        const T ratio = math::sqrt(x0) / math::sqrt(x1);  // x0 / x1 may overflow
        return math::where((x0 == T(0)) | (x1 == T(0)), T(1), ratio);
    }
};
struct LambUpdate {
    static constexpr auto about =
        describe("catena.lamb_update", "param -= lr * ratio * r",
                 in(Port("param").mutated(), "r", Port("ratio", "()")), out(),
                 not_negative(attr("lr", 0.001, "the learning rate")))
            .internal()
            .example("param=(2,3) r=(2,3) ratio=()[0.5,2]");
    static constexpr auto single_x = ports(2);

    template <class T>
    CATENA_FN static void update(T& param, T r, T ratio, T lr) {
        param -= lr * ratio * r;
    }
};

// Exponential moving average of a parameter.
struct AverageUpdate {
    static constexpr auto about =
        describe("catena.average_update", "average += rate * (param - average)",
                 in("param", state("average", "float32 for halves")), out(),
                 required<double>("rate", "the weight of param").range(0, 1))
            .internal()
            .example("param=(2,3) average=(2,3) rate=0.25");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T param, T& average, T rate) {
        average += rate * (param - average);
    }
};

CATENA_FUNCTIONS(AdamWUpdate, AmsGradUpdate, LambDirectionUpdate, TrustRatio, LambUpdate,
                 AverageUpdate);

}  // namespace catena::plugins
