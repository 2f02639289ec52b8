// AdaGrad: steps shrink where gradients were large.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/optimizer.hpp>

namespace catena::optimizers {

// h += g^2; p -= lr * g / (sqrt(h) + eps)  (Duchi, Hazan and Singer, JMLR 2011.)
class AdaGrad : public Optimizer {
public:
    explicit AdaGrad(double learning_rate = 0.001, double epsilon = 1e-8)
        : Optimizer({"h"}), lr(learning_rate), eps(epsilon) {}

    double lr;
    double eps;

private:
    PluginFunction step() override { return update_(lr, eps); }

    BoundFunction<double, double> update_{"catena.ada_grad_update", {"lr", "eps"}};
};

}  // namespace catena::optimizers
