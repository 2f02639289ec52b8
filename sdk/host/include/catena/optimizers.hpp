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
    PluginFunction step() override { return update_({lr * group().rate}); }

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
    PluginFunction step() override { return update_({lr * group().rate, momentum}); }

    BoundFunction update_{"catena.momentum_sgd_update", {"lr", "momentum"}};
};

// NesterovAG, Nesterov's accelerated gradient:
// v = momentum * v - lr * g; p += momentum * v - lr * g  (Nesterov, 1983.)
// It is PyTorch's SGD with nesterov=True. lr is finite and not negative, momentum in [0, 1).
class NesterovAG : public Optimizer {
public:
    static constexpr std::string_view name = "nesterov_ag";
    static constexpr double default_rate = 0.01;
    explicit NesterovAG(double rate = default_rate, double decay = 0.9)
        : Optimizer({"v"}), lr(rate), momentum(decay) {
        (void)update_({lr, momentum});
    }
    void set_rate(double rate) override { lr = rate; }

    double lr;
    double momentum;

private:
    PluginFunction step() override { return update_({lr * group().rate, momentum}); }

    BoundFunction update_{"catena.nesterov_ag_update", {"lr", "momentum"}};
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
    PluginFunction step() override {
        return update_({alpha * group().rate, beta1, beta2, lam, eps, t()});
    }

    BoundFunction update_{"catena.adam_update", {"alpha", "beta1", "beta2", "lam", "eps", "t"}};
};

// The base of AdamW and its variants below:
// m += (1 - beta1)(g - m); v += (1 - beta2)(g^2 - v);
// m' = m / (1 - beta1^t); v' = v / (1 - beta2^t);
// p -= alpha * (m' / (sqrt(v') + eps) + decoupled_decay * p).
// beta1 and beta2 are in [0, 1); alpha, eps and decoupled_decay are finite and not negative.
class AdaptiveMoments : public Optimizer {
public:
    static constexpr double default_rate = 0.001;
    void set_rate(double rate) override { alpha = rate; }

    double alpha;
    double beta1;
    double beta2;
    double eps;
    double decoupled_decay;
    double final_lr = 0;  // the limit of AdaBound's and AMSBound's bounds; 0: no bounds
    double gamma = 1e-3;

protected:
    AdaptiveMoments(std::string_view function, std::vector<std::string> state, double rate,
                    double decay1, double decay2, double epsilon, double decay,
                    double final_rate = 0, double convergence = 1e-3);

private:
    PluginFunction step() override;

    double initial_alpha_;  // the rate for which final_lr is given
    BoundFunction update_;
};

// AdamW, Adam with decoupled weight decay (Loshchilov and Hutter, ICLR 2019); the same as
// PyTorch's. With decay 0 it is PyTorch's Adam.
class AdamW : public AdaptiveMoments {
public:
    static constexpr std::string_view name = "adam_w";
    explicit AdamW(double rate = default_rate, double decay = 0.01, double decay1 = 0.9,
                   double decay2 = 0.999, double epsilon = 1e-8)
        : AdaptiveMoments("catena.adam_w_update", {"m", "v"}, rate, decay1, decay2, epsilon,
                          decay) {}
};

// AMSGrad, AdamW with the largest v so far in place of v (Reddi, Kale and Kumar, ICLR 2018).
class AMSGrad : public AdaptiveMoments {
public:
    static constexpr std::string_view name = "ams_grad";
    explicit AMSGrad(double rate = default_rate, double decay = 0, double decay1 = 0.9,
                     double decay2 = 0.999, double epsilon = 1e-8)
        : AdaptiveMoments("catena.ams_grad_update", {"m", "v", "vhat"}, rate, decay1, decay2,
                          epsilon, decay) {}
};

// AdaBound, AdamW whose alpha / (sqrt(v') + eps) is clipped to bounds that converge to final_lr:
// at least final_lr (1 - 1 / (gamma t + 1)) and at most final_lr (1 + 1 / (gamma t)). (Luo and
// others, ICLR 2019.)
// final_lr is finite and positive, gamma in (0, 1]. final_lr is multiplied by alpha / (alpha of the
// constructor), unless the latter is 0. A step with alpha = 0 changes no parameter.
class AdaBound : public AdaptiveMoments {
public:
    static constexpr std::string_view name = "ada_bound";
    explicit AdaBound(double rate = default_rate, double final_rate = 0.1,
                      double convergence = 1e-3, double decay = 0, double decay1 = 0.9,
                      double decay2 = 0.999, double epsilon = 1e-8)
        : AdaptiveMoments("catena.adam_w_update", {"m", "v"}, rate, decay1, decay2, epsilon, decay,
                          final_rate, convergence) {}
};

// AMSBound, AdaBound with the largest v so far in place of v.
class AMSBound : public AdaptiveMoments {
public:
    static constexpr std::string_view name = "ams_bound";
    explicit AMSBound(double rate = default_rate, double final_rate = 0.1,
                      double convergence = 1e-3, double decay = 0, double decay1 = 0.9,
                      double decay2 = 0.999, double epsilon = 1e-8)
        : AdaptiveMoments("catena.ams_grad_update", {"m", "v", "vhat"}, rate, decay1, decay2,
                          epsilon, decay, final_rate, convergence) {}
};

// Lamb, AdamW whose step for each parameter has the length lr * |p|:
// r = m' / (sqrt(v') + eps) + decoupled_decay * p; p -= lr * |p| / |r| * r,
// with 1 for |p| / |r| if a norm is 0. (You and others, "Large Batch Optimization for Deep
// Learning", ICLR 2020.) Ranges are those of AdamW. The length depends on the norms of p and of all
// of r, so a step has three passes over a parameter, which compute r, the norms, and p, and it
// updates one parameter after the other. A RecordedStep cannot record it.
class Lamb : public Optimizer {
public:
    static constexpr std::string_view name = "lamb";
    static constexpr double default_rate = 0.001;
    explicit Lamb(double rate = default_rate, double decay = 0.01, double decay1 = 0.9,
                  double decay2 = 0.999, double epsilon = 1e-6);
    void set_rate(double rate) override { lr = rate; }

    double lr;
    double beta1;
    double beta2;
    double eps;
    double decoupled_decay;

private:
    void update_one(Array& param, const Array& grad, std::span<Array> state) override;

    BoundFunction direction_{"catena.lamb_direction_update",
                             {"beta1", "beta2", "eps", "decay", "t"}};
    BoundFunction update_{"catena.lamb_update", {"lr"}};
};

// Lion, steps of one size in the direction of the momentum's sign:
// p -= lr * (sign(beta1 * m + (1 - beta1) * g) + decoupled_decay * p);
// m = beta2 * m + (1 - beta2) * g  (Chen and others, 2023.)
// beta1 and beta2 are in [0, 1), lr and decoupled_decay finite and not negative.
class Lion : public Optimizer {
public:
    static constexpr std::string_view name = "lion";
    static constexpr double default_rate = 1e-4;
    explicit Lion(double rate = default_rate, double decay = 0, double decay1 = 0.9,
                  double decay2 = 0.99)
        : Optimizer({"m"}), lr(rate), beta1(decay1), beta2(decay2), decoupled_decay(decay) {
        (void)update_({lr, beta1, beta2, decoupled_decay});
    }
    void set_rate(double rate) override { lr = rate; }

    double lr;
    double beta1;
    double beta2;
    double decoupled_decay;

private:
    PluginFunction step() override {
        return update_({lr * group().rate, beta1, beta2, decoupled_decay * group().decay});
    }

    BoundFunction update_{"catena.lion_update", {"lr", "beta1", "beta2", "decay"}};
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
    PluginFunction step() override { return update_({lr * group().rate, alpha, eps}); }

    BoundFunction update_{"catena.rmsprop_update", {"lr", "alpha", "eps"}};
};

// RMSpropGraves, RMSprop with the variance of the gradient and with momentum:
// n = alpha * n + (1 - alpha) * grad^2; g = alpha * g + (1 - alpha) * grad;
// delta = momentum * delta - lr * grad / sqrt(n - g^2 + eps); p += delta  (Graves, 2013.)
// alpha and momentum are in [0, 1), lr and eps finite and not negative.
class RMSpropGraves : public Optimizer {
public:
    static constexpr std::string_view name = "rmsprop_graves";
    static constexpr double default_rate = 1e-4;
    explicit RMSpropGraves(double rate = default_rate, double decay = 0.95,
                           double decay_of_steps = 0.9, double epsilon = 1e-4)
        : Optimizer({"n", "g", "delta"}),
          lr(rate),
          alpha(decay),
          momentum(decay_of_steps),
          eps(epsilon) {
        (void)update_({lr, alpha, momentum, eps});
    }
    void set_rate(double rate) override { lr = rate; }

    double lr;
    double alpha;
    double momentum;
    double eps;

private:
    PluginFunction step() override { return update_({lr * group().rate, alpha, momentum, eps}); }

    BoundFunction update_{"catena.rmsprop_graves_update", {"lr", "alpha", "momentum", "eps"}};
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
    PluginFunction step() override { return update_({lr * group().rate, eps}); }

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
using All = std::tuple<AdaBound, AdaDelta, AdaGrad, Adam, AdamW, AMSBound, AMSGrad, Lamb, Lion,
                       MomentumSGD, NesterovAG, RMSprop, RMSpropGraves, SGD>;

// The names that options have, sorted: "ada_delta", "ada_grad", ... Loads no plugin.
std::vector<std::string_view> names();
// The default learning rate of an optimizer: lr, or alpha of Adam. Empty if it has none. Loads no
// plugin. Throws InvalidError for other names.
std::optional<double> default_rate(std::string_view name);
// Makes an optimizer by name. Throws InvalidError for other names, and for a rate if the optimizer
// has none, as AdaDelta; PluginError if no plugin has its function.
std::unique_ptr<Optimizer> make(std::string_view name, std::optional<double> rate = {});

}  // namespace catena::optimizers
