// All optimizers that come with catena, and optimizers by name. The classes are generated from the
// update functions of plugins/optimizer; `catena describe adam_update` describes one.
#pragma once

#include <catena/optimizer_classes.hpp>

#include <optional>

namespace catena::optimizers {

// The names that options have, sorted: "ada_bound", "ada_delta", ... Loads no plugin.
std::vector<std::string_view> names();
// The default lr, or alpha of Adam; empty if it has none. Throws InvalidError for other names.
std::optional<double> default_rate(std::string_view name);
// Makes an optimizer by name. Throws InvalidError for other names, and for a rate if the optimizer
// has none, as AdaDelta; PluginError if no plugin has its function.
std::unique_ptr<Optimizer> make(std::string_view name, std::optional<double> rate = {});

}  // namespace catena::optimizers
