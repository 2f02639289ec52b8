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

Arrays FunctionNode::forward(ArraySpan inputs) {
    return any_on_gpu(inputs) ? forward_gpu(inputs) : forward_cpu(inputs);
}
Arrays FunctionNode::forward_cpu(ArraySpan) { throw_missing("cpu"); }
Arrays FunctionNode::forward_gpu(ArraySpan) { throw_missing("gpu"); }

Variables FunctionNode::backward(Targets target_input_indexes, VariableSpan) {
    return Variables(target_input_indexes.size());
}

void FunctionNode::retain_inputs(std::span<const std::size_t> indexes) {
    if (stage_ != Stage::forward) {
        throw InvalidError(fmt::format("[{}] retain_inputs: only within forward()", label()));
    }
    retained_inputs_.emplace(indexes.begin(), indexes.end());
}

void FunctionNode::retain_outputs(std::span<const std::size_t> indexes) {
    if (stage_ != Stage::forward) {
        throw InvalidError(fmt::format("[{}] retain_outputs: only within forward()", label()));
    }
    retained_outputs_.emplace(indexes.begin(), indexes.end());
}

void FunctionNode::check_retained(const char* what, bool said) const {
    if (!call_) {
        throw GraphError(
            fmt::format("[{}] get_retained_{}: only within backward()", label(), what));
    }
    if (!said) {
        throw GraphError(
            fmt::format("[{}] get_retained_{}: expected retain_{}() in forward(), got none",
                        label(), what, what));
    }
}

std::vector<Variable> FunctionNode::get_retained_inputs() const {
    check_retained("inputs", retained_inputs_.has_value());
    return call_->retained_inputs();
}

std::vector<Variable> FunctionNode::get_retained_outputs() const {
    check_retained("outputs", retained_outputs_.has_value());
    return call_->retained_outputs();
}

}  // namespace catena
