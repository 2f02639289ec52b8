// AdaDelta: needs no learning rate.
#pragma once

#include <catena/bound_function.hpp>
#include <catena/optimizer.hpp>

namespace catena::optimizers {

// msg = rho * msg + (1 - rho) * g^2; dx = sqrt((msdx + eps) / (msg + eps)) * g;
// msdx = rho * msdx + (1 - rho) * dx^2; p -= dx  (Zeiler, 2012.)
// Throws InvalidError unless rho is in [0, 1) and eps finite and not negative; PluginError if no
// plugin has catena.ada_delta_update.
class AdaDelta : public Optimizer {
public:
    explicit AdaDelta(double rho = 0.95, double eps = 1e-6);

    double rho;
    double eps;

private:
    PluginFunction step() override { return update_(rho, eps); }

    BoundFunction<double, double> update_{"catena.ada_delta_update", {"rho", "eps"}};
};

}  // namespace catena::optimizers
