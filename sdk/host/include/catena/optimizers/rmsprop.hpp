// RMSprop: steps scaled by a running mean of squared gradients.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/optimizer.hpp>

namespace catena::optimizers {

// ms = alpha * ms + (1 - alpha) * g^2; p -= lr * g / (sqrt(ms) + eps)  (Tieleman and Hinton, 2012.)
class RMSprop : public Optimizer {
public:
    explicit RMSprop(double learning_rate = 0.01, double decay = 0.99, double epsilon = 1e-8)
        : Optimizer({"ms"}), lr(learning_rate), alpha(decay), eps(epsilon) {}

    double lr;
    double alpha;
    double eps;

private:
    PluginFunction step() override { return update_(lr, alpha, eps); }

    BoundFunction<double, double, double> update_{"catena.rmsprop_update", {"lr", "alpha", "eps"}};
};

}  // namespace catena::optimizers
