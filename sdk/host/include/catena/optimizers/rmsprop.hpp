// RMSprop: steps scaled by a running mean of squared gradients.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/optimizer.hpp>

namespace catena::optimizers {

// ms = alpha * ms + (1 - alpha) * g^2; p -= lr * g / (sqrt(ms) + eps)  (Tieleman and Hinton, 2012.)
// Throws InvalidError unless alpha is in [0, 1), lr and eps finite and not negative; PluginError if no
// plugin has catena.rmsprop_update.
class RMSprop : public Optimizer {
public:
    static constexpr double default_rate = 0.01;
    explicit RMSprop(double lr = default_rate, double alpha = 0.99, double eps = 1e-8);
    void set_rate(double rate) override { lr = rate; }

    double lr;
    double alpha;
    double eps;

private:
    PluginFunction step() override { return update_(lr, alpha, eps); }

    BoundFunction<double, double, double> update_{"catena.rmsprop_update", {"lr", "alpha", "eps"}};
};

}  // namespace catena::optimizers
