// AdaGrad: steps shrink where past gradients were large.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/optimizer.hpp>

namespace catena::optimizers {

// h += g^2; p -= lr * g / (sqrt(h) + eps)  (Duchi, Hazan and Singer, JMLR 2011.)
// Throws InvalidError unless lr and eps are finite and not negative; PluginError if no plugin has
// catena.ada_grad_update.
class AdaGrad : public Optimizer {
public:
    static constexpr double default_rate = 0.001;
    explicit AdaGrad(double lr = default_rate, double eps = 1e-8);
    void set_rate(double rate) override { lr = rate; }

    double lr;
    double eps;

private:
    PluginFunction step() override { return update_(lr, eps); }

    BoundFunction<double, double> update_{"catena.ada_grad_update", {"lr", "eps"}};
};

}  // namespace catena::optimizers
