// Adam: steps scaled by running moments of the gradient.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/optimizer.hpp>

namespace catena::optimizers {

// b = beta1 * lam^(t-1); m += (1 - b)(g - m); v += (1 - beta2)(g^2 - v);
// p -= alpha * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps)
// (Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2014, first version.)
// Throws InvalidError unless beta1 and beta2 are in [0, 1), lam in [0, 1], alpha and eps finite and
// not negative; PluginError if no plugin has catena.adam_update.
class Adam : public Optimizer {
public:
    static constexpr double default_rate = 0.001;
    explicit Adam(double alpha = default_rate, double beta1 = 0.9, double beta2 = 0.999,
                  double lam = 1 - 1e-8, double eps = 1e-8);
    void set_rate(double rate) override { alpha = rate; }

    // The bias-corrected step size of the last update: the factor of m / (sqrt(v) + eps) above.
    // Before the first update, that of the first.
    double lr() const;

    double alpha;
    double beta1;
    double beta2;
    double lam;
    double eps;

private:
    PluginFunction step() override { return update_(alpha, beta1, beta2, lam, eps, t()); }

    BoundFunction<double, double, double, double, double, std::int64_t> update_{
        "catena.adam_update", {"alpha", "beta1", "beta2", "lam", "eps", "t"}};
};

}  // namespace catena::optimizers
