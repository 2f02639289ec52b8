// MomentumSGD: gradient descent with momentum.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/optimizer.hpp>

namespace catena::optimizers {

// v = momentum * v - lr * g; p += v. Throws InvalidError unless lr is finite and not negative and
// momentum in [0, 1); PluginError if no plugin has catena.momentum_sgd_update.
class MomentumSGD : public Optimizer {
public:
    static constexpr double default_rate = 0.01;
    explicit MomentumSGD(double lr = default_rate, double momentum = 0.9);
    void set_rate(double rate) override { lr = rate; }

    double lr;
    double momentum;

private:
    PluginFunction step() override { return update_(lr, momentum); }

    BoundFunction<double, double> update_{"catena.momentum_sgd_update", {"lr", "momentum"}};
};

}  // namespace catena::optimizers
