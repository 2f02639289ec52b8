// What may be learned.
#pragma once

#include <catena/core/error.hpp>
#include <catena/core/variable.hpp>

#include <fmt/format.h>

#include <string_view>

namespace catena {

// Makes a leaf that takes gradients a parameter. Throws InvalidError for other variables.
inline void require_parameter(std::string_view where, std::string_view name,
                              const Variable& variable) {
    VariableNode& node = variable.node();
    if (!node.is_parameter && (!node.requires_grad || node.creator)) {
        throw InvalidError(fmt::format("[{}] {}: expected a Parameter, got a variable that {}",
                                       where, name,
                                       node.creator ? "a call made" : "takes no gradient"));
    }
    node.is_parameter = true;
}

}  // namespace catena
