// SGD: stochastic gradient descent.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/optimizer.hpp>

namespace catena::optimizers {

// p -= lr * g. Throws InvalidError unless lr is finite and not negative; PluginError if no plugin has
// catena.sgd_update.
class SGD : public Optimizer {
public:
    static constexpr double default_rate = 0.01;
    explicit SGD(double lr = default_rate);
    void set_rate(double rate) override { lr = rate; }

    double lr;

private:
    PluginFunction step() override { return update_(lr); }

    BoundFunction<double> update_{"catena.sgd_update", {"lr"}};
};

}  // namespace catena::optimizers
