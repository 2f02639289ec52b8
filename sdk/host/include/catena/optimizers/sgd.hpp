// SGD: stochastic gradient descent.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/optimizer.hpp>

namespace catena::optimizers {

// p -= lr * g
class SGD : public Optimizer {
public:
    explicit SGD(double learning_rate = 0.01) : lr(learning_rate) {}

    double lr;

private:
    PluginFunction step() override { return update_(lr); }

    BoundFunction<double> update_{"catena.sgd_update", {"lr"}};
};

}  // namespace catena::optimizers
