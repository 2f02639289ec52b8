// Adam: steps scaled by running moments of the gradient.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/optimizer.hpp>

namespace catena::optimizers {

// b = beta1 * lam^(t-1); m += (1 - b)(g - m); v += (1 - beta2)(g^2 - v);
// p -= alpha * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + eps)
// (Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2014, first version.)
class Adam : public Optimizer {
public:
    explicit Adam(double step_size = 0.001, double decay1 = 0.9, double decay2 = 0.999,
                  double decay_of_beta1 = 1 - 1e-8, double epsilon = 1e-8)
        : Optimizer({"m", "v"}),
          alpha(step_size),
          beta1(decay1),
          beta2(decay2),
          lam(decay_of_beta1),
          eps(epsilon) {}

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
