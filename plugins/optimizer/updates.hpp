// Updates of parameters by formulas for each element. adam.hpp and lamb.hpp have others.
#pragma once

#include <cmath>

#include "update_types.hpp"

namespace catena::plugins {

struct SgdUpdate {
    static constexpr auto about = describe("catena.sgd_update", "SGD(lr): param -= lr * grad",
                                           in(param, "grad"), out(), learning_rate(0.01))
                                      .example("param=(2,3) grad=(2,3)")
                                      .example("param=() grad=() lr=0.5");

    template <class T>
    CATENA_FN static void update(T& param, T grad, T lr) {
        param -= lr * grad;
    }
};

constexpr auto with_velocity(const char* name, const char* doc) {
    return describe(name, doc, in(param, "grad", state("v", "the velocity")), out(),
                    learning_rate(0.01), below_one(attr("momentum", 0.9, "decay of v")))
        .example("param=(2,3) grad=(2,3) v=(2,3)");
}

struct MomentumSgdUpdate {
    static constexpr auto about = with_velocity(
        "catena.momentum_sgd_update",
        "MomentumSGD(lr, momentum): v = momentum * v - lr * grad; param += v\n\nGradient descent "
        "with momentum (Polyak, 1964).");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& v, T lr, T momentum) {
        v = momentum * v - lr * grad;
        param += v;
    }
};

struct CorrectedMomentumSgdUpdate {
    static constexpr auto about = with_velocity(
        "catena.corrected_momentum_sgd_update",
        "CorrectedMomentumSGD(lr, momentum): v = momentum * v - grad; param += lr * v\n\nMomentum "
        "that does not depend on the rate (Goyal and others, 2017).");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& v, T lr, T momentum) {
        v = momentum * v - grad;
        param += lr * v;
    }
};

struct NesterovAgUpdate {
    static constexpr auto about =
        with_velocity("catena.nesterov_ag_update",
                      "NesterovAG(lr, momentum): v = momentum * v - lr * grad; "
                      "param += momentum^2 * v - (1 + momentum) * lr * grad\n\n"
                      "Nesterov's accelerated gradient, as Chainer computes it.")
            .since(2);
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& v, T lr, T momentum) {
        v = momentum * v - lr * grad;
        param += momentum * momentum * v - (T(1) + momentum) * lr * grad;
    }
};

struct LionUpdate {
    static constexpr auto about =
        describe("catena.lion_update",
                 "Lion(lr, beta1, beta2, weight_decay_rate): param -= lr * (sign(beta1 * m + (1 - "
                 "beta1) * grad) + weight_decay_rate * param); m = beta2 * m + (1 - beta2) * grad"
                 "\n\nSteps of one size, in the direction of the momentum's sign (Chen and others, "
                 "\"Symbolic Discovery of Optimization Algorithms\", 2023).",
                 in(param, "grad", state("m", "mean of grad")), out(), learning_rate(1e-4),
                 below_one(attr("beta1", 0.9, "weight of m in the step")),
                 below_one(attr("beta2", 0.99, "decay of m")),
                 weight_decay_rate(0, "decoupled weight decay, multiplied by lr"))
            .since(2)
            .example("param=(2,3) grad=(2,3)[1,2] m=(2,3)[0.5,1]")
            .example("param=(3) grad=(3)[-2,-1] m=(3)[-1,-0.5] weight_decay_rate=0.5");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& m, T lr, T beta1, T beta2, T decay) {
        const T c = beta1 * m + (T(1) - beta1) * grad;
        const T sign = math::where(c > T(0), T(1), math::where(c < T(0), T(-1), c));
        param -= lr * (sign + decay * param);
        m = beta2 * m + (T(1) - beta2) * grad;
    }
};

struct AdaGradUpdate {
    static constexpr auto about =
        describe(
            "catena.ada_grad_update",
            "AdaGrad(lr, eps): h += grad^2; param -= lr * grad / (sqrt(h) + eps)\n\n"
            "Steps that shrink where gradients were large (Duchi, Hazan and Singer, JMLR 2011).",
            in(param, "grad", state("h", "sum of grad^2")), out(), learning_rate(0.001),
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
        describe(
            "catena.rmsprop_update",
            "RMSprop(lr, alpha, eps, eps_inside_sqrt): ms = alpha * ms + (1 - alpha) * grad^2; "
            "param -= lr * grad / (sqrt(ms) + eps)\n\nSteps scaled by a running mean of "
            "squared gradients (Tieleman and Hinton, 2012). With eps_inside_sqrt, the "
            "denominator is sqrt(ms + eps).",
            in(param, "grad", state("ms", "mean of grad^2")), out(), learning_rate(0.01),
            below_one(attr("alpha", 0.99, "decay of ms")),
            not_negative(attr("eps", 1e-8, "added to sqrt(ms)")),
            attr("eps_inside_sqrt", false, "whether eps is added to ms"))
            .since(2)
            .example("param=(2,3) grad=(2,3) ms=(2,3)[0,1]")
            .example("param=(3) grad=(3) ms=(3)[0,1] eps=0.1 eps_inside_sqrt=true");
    using types = UpdateTypes;

    template <class T>
    struct Constants {
        T lr, alpha, inside, outside;
    };
    template <class T>
    static Constants<T> prepare(double lr, double alpha, double eps, double is_inside) {
        const auto outside = static_cast<T>(is_inside != 0 ? 0 : eps);
        return {static_cast<T>(lr), static_cast<T>(alpha), static_cast<T>(eps) - outside, outside};
    }
    template <class T>
    CATENA_FN static void update(T& param, T grad, T& ms, const Constants<T>& c) {
        ms = c.alpha * ms + (T(1) - c.alpha) * grad * grad;
        param -= c.lr * grad / (math::sqrt(ms + c.inside) + c.outside);
    }
};

struct RmspropGravesUpdate {
    static constexpr auto about =
        describe("catena.rmsprop_graves_update",
                 "RMSpropGraves(lr, alpha, momentum, eps): n and g are running means of grad^2 and "
                 "grad; delta = momentum * delta - lr * grad / sqrt(n - g^2 + eps); param += delta"
                 "\n\nRMSprop with the variance of the gradient and with momentum (Graves, "
                 "\"Generating Sequences With Recurrent Neural Networks\", 2013).",
                 in(param, "grad", state("n", "mean of grad^2"), state("g", "mean of grad"),
                    state("delta", "the last step")),
                 out(), learning_rate(1e-4), below_one(attr("alpha", 0.95, "decay of the means")),
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
        describe("catena.ada_delta_update",
                 "AdaDelta(rho, eps): dx = sqrt((msdx + eps) / (msg + eps)) * grad; param -= dx, "
                 "with running means msg and msdx\n\nSteps without a learning rate, in the unit of "
                 "the parameter (Zeiler, 2012).",
                 in(param, "grad", state("msg", "mean of grad^2"), state("msdx", "mean of dx^2")),
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

struct Smorms3Update {
    static constexpr auto about =
        describe("catena.smorms3_update",
                 "SMORMS3(lr, eps): param -= min(g^2 / (g2 + eps), lr) / (sqrt(g2) + eps) * grad, "
                 "with running means g and g2\n\nRMSprop with a memory that adapts (Simon Funk, "
                 "2015).",
                 in(param, "grad", state("mem", "length of the memory; 0 in new state, means 1"),
                    state("g", "mean of grad"), state("g2", "mean of grad^2")),
                 out(), learning_rate(0.001),
                 not_negative(attr("eps", 1e-16, "keeps the quotients finite")))
            .example("param=(2,3) grad=(2,3)[0.5,1] mem=(2,3)[1,2] g=(2,3) g2=(2,3)[1,2] lr=0.5")
            .example("param=(3) grad=(3)[0.5,1] mem=(3)[0,0] g=(3)[0,0] g2=(3)[0,0]");
    using types = UpdateTypes;

    template <class T>
    CATENA_FN static void update(T& param, T grad, T& mem, T& g, T& g2, T lr, T eps) {
        const T length = math::max(mem, T(1));
        const T r = T(1) / (length + T(1));
        g += r * (grad - g);
        g2 += r * (grad * grad - g2);
        const T x = g * g / (g2 + eps);
        param -= grad * math::min(x, lr) / (math::sqrt(g2) + eps);
        mem = T(1) + length * (T(1) - x);
    }
};

struct MsvagUpdate {
    static constexpr auto about =
        describe("catena.msvag_update",
                 "MSVAG(lr, beta, eta, weight_decay_rate): momentum scaled by the variance of "
                 "gradients\n\nm' and v' are running means of grad and grad^2 whose bias is "
                 "corrected; param -= eta * (lr * factor * m' + weight_decay_rate * param), where "
                 "factor is m'^2 / (m'^2 + rho * s), and s the estimate (v' - m'^2) / (1 - rho) of "
                 "the variance (Balles and Hennig, 2018).",
                 in(param, "grad", state("m", "mean of grad"), state("v", "mean of grad^2")), out(),
                 learning_rate(0.1), below_one(attr("beta", 0.9, "decay of the means")), eta,
                 weight_decay_rate(0, "decoupled weight decay"), step_number)
            .example("param=(2,3) grad=(2,3)[0.5,1] m=(2,3)[0.5,1] v=(2,3)[2,3] t=2")
            .example("param=(3) grad=(3)[0,0] m=(3)[0,0] v=(3)[0,0] t=1 weight_decay_rate=0.5");
    using types = UpdateTypes;

    template <class T>
    struct Constants {
        T decay, bias, ratio, step, keep;
    };
    template <class T>
    static Constants<T> prepare(double lr, double beta, double factor, double decay, double t) {
        const auto square = [](double x) { return x * x; };
        const double power = std::pow(beta, t);
        const double rho = std::min(
            square(1 - beta) * (1 - square(power)) / (square(1 - power) * (1 - square(beta))),
            0.9999);
        return {static_cast<T>(1 - beta), static_cast<T>(1 / (1 - power)),
                static_cast<T>(rho / (1 - rho)), static_cast<T>(factor * lr),
                static_cast<T>(1 - factor * decay)};
    }
    template <class T>
    CATENA_FN static void update(T& param, T grad, T& m, T& v, const Constants<T>& c) {
        m += c.decay * (grad - m);
        v += c.decay * (grad * grad - v);
        const T mean = m * c.bias;
        const T squared = mean * mean;
        const T whole = squared + c.ratio * (v * c.bias - squared);
        const T quotient = math::min(math::max(squared / whole, T(0)), T(1));
        param = c.keep * param - c.step * mean * math::where(whole == T(0), T(0), quotient);
    }
};

CATENA_FUNCTIONS(SgdUpdate, MomentumSgdUpdate, CorrectedMomentumSgdUpdate, NesterovAgUpdate,
                 LionUpdate, AdaGradUpdate, RmspropUpdate, RmspropGravesUpdate, AdaDeltaUpdate,
                 Smorms3Update, MsvagUpdate);

}  // namespace catena::plugins
