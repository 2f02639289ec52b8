// Updates of parameters.
#pragma once

#include <cmath>

#include "update_types.hpp"

namespace catena::plugins {

// Stochastic gradient descent, without and with momentum (Polyak, 1964).
struct SgdUpdate {
    static constexpr auto about =
        describe("catena.sgd_update", "param -= lr * grad", in(Port("param").mutated(), "grad"),
                 out(), not_negative(attr("lr", 0.01, "the learning rate")))
            .example("param=(2,3) grad=(2,3)")
            .example("param=() grad=() lr=0.5");

    template <class T>
    CATENA_FN static void update(T& param, T grad, T lr) {
        param -= lr * grad;
    }
};

struct MomentumSgdUpdate {
    static constexpr auto about =
        describe("catena.momentum_sgd_update", "v = momentum * v - lr * grad; param += v",
                 in(Port("param").mutated(), "grad", state("v", "the velocity")), out(),
                 not_negative(attr("lr", 0.01, "the learning rate")),
                 below_one(attr("momentum", 0.9, "decay of v")))
            .example("param=(2,3) grad=(2,3) v=(2,3)");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& v, T lr, T momentum) {
        v = momentum * v - lr * grad;
        param += v;
    }
};

// Momentum, with the gradient of the point to which the velocity leads (Nesterov, 1983), in the form of
// Bengio, Boulanger-Lewandowski and Pascanu, "Advances in Optimizing Recurrent Networks", 2012.
struct NesterovAgUpdate {
    static constexpr auto about =
        describe("catena.nesterov_ag_update",
                 "v = momentum * v - lr * grad; param += momentum * v - lr * grad",
                 in(Port("param").mutated(), "grad", state("v", "the velocity")), out(),
                 not_negative(attr("lr", 0.01, "the learning rate")),
                 below_one(attr("momentum", 0.9, "decay of v")))
            .example("param=(2,3) grad=(2,3) v=(2,3)");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& v, T lr, T momentum) {
        v = momentum * v - lr * grad;
        param += momentum * v - lr * grad;
    }
};

// Steps of one size, in the direction of the momentum's sign (Chen and others, "Symbolic Discovery of
// Optimization Algorithms", 2023).
struct LionUpdate {
    static constexpr auto about =
        describe("catena.lion_update",
                 "param -= lr * (sign(beta1 * m + (1 - beta1) * grad) + decay * param); "
                 "m = beta2 * m + (1 - beta2) * grad",
                 in(Port("param").mutated(), "grad", state("m", "mean of grad")), out(),
                 not_negative(attr("lr", 1e-4, "the learning rate")),
                 below_one(attr("beta1", 0.9, "weight of m in the step")),
                 below_one(attr("beta2", 0.99, "decay of m")), decoupled_decay(0))
            .example("param=(2,3) grad=(2,3)[1,2] m=(2,3)[0.5,1]")
            .example("param=(3) grad=(3)[-2,-1] m=(3)[-1,-0.5] decay=0.5");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& m, T lr, T beta1, T beta2, T decay) {
        const T c = beta1 * m + (T(1) - beta1) * grad;
        const T sign = math::where(c > T(0), T(1), math::where(c < T(0), T(-1), c));
        param -= lr * (sign + decay * param);
        m = beta2 * m + (T(1) - beta2) * grad;
    }
};

// Steps divided by a norm of past gradients: AdaGrad (Duchi, Hazan and Singer, JMLR 2011), RMSprop
// (Tieleman and Hinton, lecture 6.5 of Neural Networks for Machine Learning, 2012), and AdaDelta
// (Zeiler, 2012), whose steps have the unit of the parameter.
struct AdaGradUpdate {
    static constexpr auto about =
        describe("catena.ada_grad_update", "h += grad^2; param -= lr * grad / (sqrt(h) + eps)",
                 in(Port("param").mutated(), "grad", state("h", "sum of grad^2")), out(),
                 not_negative(attr("lr", 0.001, "the learning rate")),
                 not_negative(attr("eps", 1e-8, "added to sqrt(h)")))
            .example("param=(2,3) grad=(2,3) h=(2,3)[0,1]");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& h, T lr, T eps) {
        h += grad * grad;
        param -= lr * grad / (math::sqrt(h) + eps);
    }
};

struct RmspropUpdate {
    static constexpr auto about =
        describe("catena.rmsprop_update",
                 "ms = alpha * ms + (1 - alpha) * grad^2; param -= lr * grad / (sqrt(ms) + eps)",
                 in(Port("param").mutated(), "grad", state("ms", "mean of grad^2")), out(),
                 not_negative(attr("lr", 0.01, "the learning rate")),
                 below_one(attr("alpha", 0.99, "decay of ms")),
                 not_negative(attr("eps", 1e-8, "added to sqrt(ms)")))
            .example("param=(2,3) grad=(2,3) ms=(2,3)[0,1]");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& ms, T lr, T alpha, T eps) {
        ms = alpha * ms + (T(1) - alpha) * grad * grad;
        param -= lr * grad / (math::sqrt(ms) + eps);
    }
};

// RMSprop with the variance of the gradient and with momentum (Graves, "Generating Sequences With
// Recurrent Neural Networks", 2013).
struct RmspropGravesUpdate {
    static constexpr auto about =
        describe(
            "catena.rmsprop_graves_update",
            "n and g are running means of grad^2 and grad; delta = momentum * delta - lr * grad "
            "/ sqrt(n - g^2 + eps); param += delta",
            in(Port("param").mutated(), "grad", state("n", "mean of grad^2"),
               state("g", "mean of grad"), state("delta", "the last step")),
            out(), not_negative(attr("lr", 1e-4, "the learning rate")),
            below_one(attr("alpha", 0.95, "decay of the means")),
            below_one(attr("momentum", 0.9, "decay of delta")),
            not_negative(attr("eps", 1e-4, "added to the variance")))
            .example("param=(2,3) grad=(2,3) n=(2,3)[1,2] g=(2,3)[0,1] delta=(2,3)");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& n, T& g, T& delta, T lr, T alpha, T momentum,
                                 T eps) {
        n = alpha * n + (T(1) - alpha) * grad * grad;
        g = alpha * g + (T(1) - alpha) * grad;
        const T variance = math::max(n - g * g, T(0));  // rounding may make it negative
        delta = momentum * delta - lr * grad / math::sqrt(variance + eps);
        param += delta;
    }
};

struct AdaDeltaUpdate {
    static constexpr auto about =
        describe(
            "catena.ada_delta_update",
            "dx = sqrt((msdx + eps) / (msg + eps)) * grad; param -= dx, with running means msg "
            "and msdx",
            in(Port("param").mutated(), "grad", state("msg", "mean of grad^2"),
               state("msdx", "mean of dx^2")),
            out(), below_one(attr("rho", 0.95, "decay of the means")),
            not_negative(attr("eps", 1e-6, "keeps the ratio finite")))
            .example("param=(2,3) grad=(2,3) msg=(2,3)[0,1] msdx=(2,3)[0,1]");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& msg, T& msdx, T rho, T eps) {
        msg = rho * msg + (T(1) - rho) * grad * grad;
        const T dx = math::sqrt((msdx + eps) / (msg + eps)) * grad;
        msdx = rho * msdx + (T(1) - rho) * dx * dx;
        param -= dx;
    }
};

// Adam (Kingma and Ba, 2014, first version: the first moment's decay shrinks by lam each step).
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

CATENA_FUNCTIONS(SgdUpdate, MomentumSgdUpdate, NesterovAgUpdate, LionUpdate, AdaGradUpdate,
                 RmspropUpdate, RmspropGravesUpdate, AdaDeltaUpdate, AdamUpdate);

}  // namespace catena::plugins
