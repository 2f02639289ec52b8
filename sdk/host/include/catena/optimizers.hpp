// All optimizers that come with catena.
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

// The names that options have, sorted: "ada_delta", "ada_grad", ... Loads no plugin.
std::vector<std::string_view> names();
// The rate of an optimizer that is made without one: lr, alpha of Adam. None: it has no rate. Loads
// no plugin. Throws InvalidError for other names.
std::optional<double> default_rate(std::string_view name);
// By such a name, with its default rate if none is given. Throws InvalidError for other names, and
// for a rate where there is none, as in AdaDelta; PluginError if no plugin has its function.
std::unique_ptr<Optimizer> make(std::string_view name, std::optional<double> rate = {});

}  // namespace catena::optimizers
