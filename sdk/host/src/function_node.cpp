// FunctionNode: what its author calls.
#include "user_call.hpp"

#include <catena/core/error.hpp>

#include <fmt/format.h>

namespace catena {
std::vector<Variable> FunctionNode::apply(std::span<const Variable> inputs) {
    std::shared_ptr<FunctionNode> self = weak_from_this().lock();
    if (!self) {
        throw InvalidError(
            fmt::format("[{}] apply: expected a node in a std::shared_ptr, which "
                        "apply<>() makes, got one outside",
                        label()));
    }
    if (stage_ != Stage::fresh) {
        throw GraphError(
            fmt::format("[{}] apply: expected a new node for each call, got one that "
                        "was applied before",
                        label()));
    }
    return UserCall::run(std::move(self), inputs);
}

std::vector<Variable> FunctionNode::backward(std::span<const std::size_t> target_input_indexes,
                                             std::span<const Variable>) {
    return std::vector<Variable>(target_input_indexes.size());
}

void FunctionNode::retain_inputs(std::span<const std::size_t> indexes) {
    if (stage_ != Stage::forward) {
        throw InvalidError(fmt::format("[{}] retain_inputs: only within forward()", label()));
    }
    retained_inputs_.assign(indexes.begin(), indexes.end());
}

void FunctionNode::retain_outputs(std::span<const std::size_t> indexes) {
    if (stage_ != Stage::forward) {
        throw InvalidError(fmt::format("[{}] retain_outputs: only within forward()", label()));
    }
    retained_outputs_.assign(indexes.begin(), indexes.end());
}

std::vector<Variable> FunctionNode::get_retained_inputs() const {
    if (!call_) {
        throw GraphError(fmt::format("[{}] get_retained_inputs: only within backward()", label()));
    }
    return call_->retained_inputs();
}

std::vector<Variable> FunctionNode::get_retained_outputs() const {
    if (!call_) {
        throw GraphError(fmt::format("[{}] get_retained_outputs: only within backward()", label()));
    }
    return call_->retained_outputs();
}

}  // namespace catena
