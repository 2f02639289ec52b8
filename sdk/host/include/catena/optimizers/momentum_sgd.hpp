// MomentumSGD: gradient descent with momentum.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/optimizer.hpp>

namespace catena::optimizers {

// v = momentum * v - lr * g; p += v
class MomentumSGD : public Optimizer {
public:
    explicit MomentumSGD(double learning_rate = 0.01, double decay = 0.9)
        : Optimizer({"v"}), lr(learning_rate), momentum(decay) {}

    double lr;
    double momentum;

private:
    PluginFunction step() override { return update_(lr, momentum); }

    BoundFunction<double, double> update_{"catena.momentum_sgd_update", {"lr", "momentum"}};
};

}  // namespace catena::optimizers
