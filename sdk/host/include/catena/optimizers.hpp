// All optimizers that come with catena. To add one, declare it here and in `All` at the end; its
// update rule is a function of a plugin (plugins/optimizer).
#pragma once

#include <catena/bound_function.hpp>
#include <catena/optimizer.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

namespace catena::optimizers {

// The constructors throw InvalidError for arguments outside the ranges given here, and PluginError
// if no plugin has the update function.

// SGD, stochastic gradient descent: p -= lr * g. lr is finite and not negative.
class SGD : public Optimizer {
public:
    static constexpr std::string_view name = "sgd";
    static constexpr double default_rate = 0.01;
    explicit SGD(double rate = default_rate) : lr(rate) { (void)update_({lr}); }
    void set_rate(double rate) override { lr = rate; }

    double lr;

private:
    PluginFunction step() override { return update_({lr}); }

    BoundFunction update_{"catena.sgd_update", {"lr"}};
};

// MomentumSGD, gradient descent with momentum: v = momentum * v - lr * g; p += v. lr is finite and
// not negative, momentum in [0, 1).
class MomentumSGD : public Optimizer {
public:
    static constexpr std::string_view name = "momentum_sgd";
    static constexpr double default_rate = 0.01;
    explicit MomentumSGD(double rate = default_rate, double decay = 0.9)
        : Optimizer({"v"}), lr(rate), momentum(decay) {
        (void)update_({lr, momentum});
    }
    void set_rate(double rate) override { lr = rate; }

    double lr;
    double momentum;

private:
    PluginFunction step() override { return update_({lr, momentum}); }

    BoundFunction update_{"catena.momentum_sgd_update", {"lr", "momentum"}};
};

// Adam, steps scaled by running moments of the gradient:
// b = beta1 * lam^(t-1); m += (1 - b)(g - m); v += (1 - beta2)(g^2 - v);
// p -= alpha * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps)
// (Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2014, first version.)
// beta1 and beta2 are in [0, 1), lam in [0, 1], alpha and eps finite and not negative.
class Adam : public Optimizer {
public:
    static constexpr std::string_view name = "adam";
    static constexpr double default_rate = 0.001;
    explicit Adam(double rate = default_rate, double decay1 = 0.9, double decay2 = 0.999,
                  double decay_of_beta1 = 1 - 1e-8, double epsilon = 1e-8)
        : Optimizer({"m", "v"}),
          alpha(rate),
          beta1(decay1),
          beta2(decay2),
          lam(decay_of_beta1),
          eps(epsilon) {
        (void)update_({alpha, beta1, beta2, lam, eps, 1});
    }
    void set_rate(double rate) override { alpha = rate; }

    // The step size of the last update, bias corrected: the factor of m / (sqrt(v) + eps) above.
    // Before the first update it is that of the first.
    double lr() const {
        const auto n = static_cast<double>(std::max<std::int64_t>(t(), 1));
        return alpha * std::sqrt(1 - std::pow(beta2, n)) / (1 - std::pow(beta1, n));
    }

    double alpha;
    double beta1;
    double beta2;
    double lam;
    double eps;

private:
    PluginFunction step() override { return update_({alpha, beta1, beta2, lam, eps, t()}); }

    BoundFunction update_{"catena.adam_update", {"alpha", "beta1", "beta2", "lam", "eps", "t"}};
};

// RMSprop, steps scaled by a running mean of squared gradients:
// ms = alpha * ms + (1 - alpha) * g^2; p -= lr * g / (sqrt(ms) + eps)  (Tieleman and Hinton, 2012.)
// alpha is in [0, 1), lr and eps finite and not negative.
class RMSprop : public Optimizer {
public:
    static constexpr std::string_view name = "rmsprop";
    static constexpr double default_rate = 0.01;
    explicit RMSprop(double rate = default_rate, double decay = 0.99, double epsilon = 1e-8)
        : Optimizer({"ms"}), lr(rate), alpha(decay), eps(epsilon) {
        (void)update_({lr, alpha, eps});
    }
    void set_rate(double rate) override { lr = rate; }

    double lr;
    double alpha;
    double eps;

private:
    PluginFunction step() override { return update_({lr, alpha, eps}); }

    BoundFunction update_{"catena.rmsprop_update", {"lr", "alpha", "eps"}};
};

// AdaGrad, steps that shrink where gradients were large: h += g^2; p -= lr * g / (sqrt(h) + eps)
// (Duchi, Hazan and Singer, JMLR 2011.) lr and eps are finite and not negative.
class AdaGrad : public Optimizer {
public:
    static constexpr std::string_view name = "ada_grad";
    static constexpr double default_rate = 0.001;
    explicit AdaGrad(double rate = default_rate, double epsilon = 1e-8)
        : Optimizer({"h"}), lr(rate), eps(epsilon) {
        (void)update_({lr, eps});
    }
    void set_rate(double rate) override { lr = rate; }

    double lr;
    double eps;

private:
    PluginFunction step() override { return update_({lr, eps}); }

    BoundFunction update_{"catena.ada_grad_update", {"lr", "eps"}};
};

// AdaDelta, which has no learning rate:
// msg = rho * msg + (1 - rho) * g^2; dx = sqrt((msdx + eps) / (msg + eps)) * g;
// msdx = rho * msdx + (1 - rho) * dx^2; p -= dx  (Zeiler, 2012.)
// rho is in [0, 1), eps finite and not negative.
class AdaDelta : public Optimizer {
public:
    static constexpr std::string_view name = "ada_delta";
    explicit AdaDelta(double decay = 0.95, double epsilon = 1e-6)
        : Optimizer({"msg", "msdx"}), rho(decay), eps(epsilon) {
        (void)update_({rho, eps});
    }

    double rho;
    double eps;

private:
    PluginFunction step() override { return update_({rho, eps}); }

    BoundFunction update_{"catena.ada_delta_update", {"rho", "eps"}};
};

// Sorted by name.
using All = std::tuple<AdaDelta, AdaGrad, Adam, MomentumSGD, RMSprop, SGD>;

// The names that options have, sorted: "ada_delta", "ada_grad", ... Loads no plugin.
std::vector<std::string_view> names();
// The default learning rate of an optimizer: lr, or alpha of Adam. Empty if it has none. Loads no
// plugin. Throws InvalidError for other names.
std::optional<double> default_rate(std::string_view name);
// Makes an optimizer by name. Throws InvalidError for other names, and for a rate if the optimizer
// has none, as AdaDelta; PluginError if no plugin has its function.
std::unique_ptr<Optimizer> make(std::string_view name, std::optional<double> rate = {});

}  // namespace catena::optimizers
