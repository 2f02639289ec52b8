// AdaDelta: no learning rate to choose.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/optimizer.hpp>

namespace catena::optimizers {

// msg = rho * msg + (1 - rho) * g^2; dx = sqrt((msdx + eps) / (msg + eps)) * g;
// msdx = rho * msdx + (1 - rho) * dx^2; p -= dx  (Zeiler, 2012.)
class AdaDelta : public Optimizer {
public:
    explicit AdaDelta(double decay = 0.95, double epsilon = 1e-6)
        : Optimizer({"msg", "msdx"}), rho(decay), eps(epsilon) {}

    double rho;
    double eps;

private:
    PluginFunction step() override { return update_(rho, eps); }

    BoundFunction<double, double> update_{"catena.ada_delta_update", {"rho", "eps"}};
};

}  // namespace catena::optimizers
