// All optimizers that come with catena.
#pragma once

#include <catena/optimizers/ada_delta.hpp>
#include <catena/optimizers/ada_grad.hpp>
#include <catena/optimizers/adam.hpp>
#include <catena/optimizers/momentum_sgd.hpp>
#include <catena/optimizers/rmsprop.hpp>
#include <catena/optimizers/sgd.hpp>

#include <memory>
#include <string_view>
#include <vector>

namespace catena::optimizers {

// The names that options have: "sgd", "momentum_sgd", ... Loads no plugin.
std::vector<std::string_view> names();
// By such a name. Throws InvalidError for others.
std::unique_ptr<Optimizer> make(std::string_view name, double rate);

}  // namespace catena::optimizers
