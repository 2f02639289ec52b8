// Function: a FunctionNode around gradients on arrays.
#include <catena/core/config.hpp>
#include <catena/core/error.hpp>
#include <catena/function.hpp>
#include <catena/function_node.hpp>

#include <fmt/format.h>

#include <numeric>
#include <string>
#include <utility>

namespace catena {
namespace {

// The place in a graph of gradients that were computed on arrays: they end here.
class FirstOrder final : public FunctionNode {
public:
    FirstOrder(std::string function, std::vector<Array> gradients)
        : function_(std::move(function)), gradients_(std::move(gradients)) {}
    std::string label() const override { return function_; }

private:
    std::vector<Array> forward(std::span<const Array>) override { return std::move(gradients_); }
    std::vector<Variable> backward(std::span<const std::size_t>,
                                   std::span<const Variable>) override {
        throw NotDifferentiableError(fmt::format(
            "[{}] backward: it has no gradient of higher order: a Function computes its gradient "
            "on arrays; derive from FunctionNode",
            function_));
    }

    std::string function_;
    std::vector<Array> gradients_;
};

}  // namespace

class ArrayFunctionNode final : public FunctionNode {
public:
    explicit ArrayFunctionNode(std::shared_ptr<ArrayFunction> function)
        : function_(std::move(function)) {}
    std::string label() const override { return function_->label(); }

private:
    std::vector<Array> forward(std::span<const Array> inputs) override {
        n_ = inputs.size();
        std::vector<Array> outputs = function_->forward(inputs);
        if (!function_->inputs_) {
            function_->inputs_.emplace(n_);
            std::iota(function_->inputs_->begin(), function_->inputs_->end(), 0);
        }
        retain_inputs(*function_->inputs_);
        if (function_->outputs_) retain_outputs(*function_->outputs_);
        return outputs;
    }

    std::vector<Variable> backward(std::span<const std::size_t> targets,
                                   std::span<const Variable> gy) override {
        std::vector<Variable> seen;  // what the gradients depend on
        std::vector<Array> x(n_);
        const std::vector<Variable> kept = get_retained_inputs();
        for (std::size_t k = 0; k < kept.size(); ++k) {
            if (!kept[k]) continue;
            x[(*function_->inputs_)[k]] = kept[k].data();
            seen.push_back(kept[k]);
        }
        std::vector<Array> gy_arrays;
        for (const Variable& g : gy) {
            gy_arrays.push_back(g ? g.data() : Array());
            if (g) seen.push_back(g);
        }
        std::vector<Array>& outputs = function_->kept_outputs_;
        if (function_->outputs_) {
            for (const Variable& y : get_retained_outputs()) outputs.push_back(y.data());
        }
        struct Clear {
            explicit Clear(std::vector<Array>& v) : values(v) {}
            ~Clear() { values.clear(); }
            std::vector<Array>& values;
        } const clear(outputs);
        const std::vector<Array> gx = function_->backward(x, gy_arrays);
        if (gx.size() != n_) {
            throw InvalidError(fmt::format("[{}] backward: expected {} gradients, got {}", label(),
                                           n_, gx.size()));
        }
        std::vector<Array> found;
        for (const std::size_t i : targets) {
            if (gx[i]) found.push_back(gx[i]);
        }
        std::vector<Variable> variables;
        if (!config().enable_backprop) {
            for (Array& array : found) variables.push_back(as_variable(std::move(array)));
        } else if (!found.empty()) {
            variables = apply<FirstOrder>(seen, label(), std::move(found));
        }
        std::vector<Variable> result(n_);
        std::size_t next = 0;
        for (const std::size_t i : targets) {
            if (gx[i]) result[i] = std::move(variables[next++]);
        }
        return result;
    }

    std::shared_ptr<ArrayFunction> function_;
    std::size_t n_ = 0;
};

Arrays ArrayFunction::forward(ArraySpan inputs) {
    return any_on_gpu(inputs) ? forward_gpu(inputs) : forward_cpu(inputs);
}

Arrays ArrayFunction::backward(ArraySpan inputs, ArraySpan grad_outputs) {
    const bool gpu = any_on_gpu(inputs) || any_on_gpu(grad_outputs);
    return gpu ? backward_gpu(inputs, grad_outputs) : backward_cpu(inputs, grad_outputs);
}

Arrays ArrayFunction::forward_cpu(ArraySpan) { throw_missing("cpu"); }
Arrays ArrayFunction::forward_gpu(ArraySpan) { throw_missing("gpu"); }
Arrays ArrayFunction::backward_cpu(ArraySpan inputs, ArraySpan) { return Arrays(inputs.size()); }
Arrays ArrayFunction::backward_gpu(ArraySpan inputs, ArraySpan) { return Arrays(inputs.size()); }

const std::vector<Array>& ArrayFunction::get_retained_outputs() const {
    if (!outputs_) {
        throw GraphError(fmt::format(
            "[{}] get_retained_outputs: expected retain_outputs() in forward(), got none",
            label()));
    }
    if (kept_outputs_.size() != outputs_->size()) {
        throw GraphError(fmt::format("[{}] get_retained_outputs: only within backward()", label()));
    }
    return kept_outputs_;
}

std::vector<Variable> ArrayFunction::apply(std::shared_ptr<ArrayFunction> function,
                                           std::span<const Variable> inputs) {
    return catena::apply<ArrayFunctionNode>(inputs, std::move(function));
}

Variable ArrayFunction::only(std::vector<Variable> outputs) const {
    if (outputs.size() != 1) {
        throw InvalidError(fmt::format("[{}] call: expected one output, got {}: use apply()",
                                       label(), outputs.size()));
    }
    return std::move(outputs[0]);
}

}  // namespace catena
