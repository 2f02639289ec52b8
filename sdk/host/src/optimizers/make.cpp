// Optimizers by name.
#include <catena/core/error.hpp>
#include <catena/optimizers.hpp>

#include <fmt/format.h>

namespace catena::optimizers {

std::unique_ptr<Optimizer> make(std::string_view name, double rate) {
    if (name == "sgd") return std::make_unique<SGD>(rate);
    if (name == "momentum_sgd") return std::make_unique<MomentumSGD>(rate);
    if (name == "rmsprop") return std::make_unique<RMSprop>(rate);
    if (name == "ada_grad") return std::make_unique<AdaGrad>(rate);
    if (name == "adam") return std::make_unique<Adam>(rate);
    throw InvalidError(fmt::format(
        "[optimizers] name: expected sgd, momentum_sgd, rmsprop, ada_grad or adam, got '{}'",
        name));
}

}  // namespace catena::optimizers
