// All optimizers of catena.
#pragma once

#include <catena/optimizers/ada_delta.hpp>
#include <catena/optimizers/ada_grad.hpp>
#include <catena/optimizers/adam.hpp>
#include <catena/optimizers/momentum_sgd.hpp>
#include <catena/optimizers/rmsprop.hpp>
#include <catena/optimizers/sgd.hpp>

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace catena::optimizers {

// The names for options, sorted: "ada_delta", "ada_grad", ... Loads no plugin.
std::vector<std::string_view> names();
// The default learning rate of an optimizer: lr, or alpha of Adam. Empty if it has none. Loads no
// plugin. Throws InvalidError for other names.
std::optional<double> default_rate(std::string_view name);
// Makes an optimizer by name. Throws InvalidError for other names, and for a rate if the optimizer
// has none, as AdaDelta; PluginError if no plugin has its function.
std::unique_ptr<Optimizer> make(std::string_view name, std::optional<double> rate = {});

}  // namespace catena::optimizers
